#include <cmath>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/command/bench_command.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/report/text.h"

namespace mergeplan {
namespace {

constexpr char kStyle[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;"
    "color:#1d2530;background:#fff}table{border-collapse:collapse;margin:1rem 0}"
    "td,th{padding:.3rem .8rem;text-align:right;border-bottom:1px solid #cdd3da}"
    "td:first-child,th:first-child{text-align:left}figure{display:inline-block;margin:.5rem}"
    "figcaption{font-size:.85rem}img{max-width:100%;image-rendering:pixelated}"
    "@media(prefers-color-scheme:dark){body{color:#e4e8ee;background:#14181d}}";

std::string Cell(double mean, double half_width, int trials) {
  if (std::isnan(mean)) return "<td>–</td>";
  return trials > 1 ? absl::StrFormat("<td>%.5g ± %.2g</td>", mean, half_width)
                    : absl::StrFormat("<td>%.5g</td>", mean);
}

std::string Cell(const Spread& spread, int trials) {
  return Cell(spread.mean, spread.half_width, trials);
}

absl::Status AddPicture(const std::string& folder, const std::string& file,
                        const std::string& caption, std::string* out) {
  if (file.empty()) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const std::string png, ReadFile(folder + "/" + file));
  absl::StrAppend(out, "<figure><img alt=\"Samples of ", Escape(caption),
                  "\" src=\"data:image/png;base64,", absl::Base64Escape(png), "\"/><figcaption>",
                  Escape(caption), "</figcaption></figure>\n");
  return absl::OkStatus();
}

std::string NameOf(const BenchRow& row) {
  return absl::StrCat(row.strategy, row.total_budget ? ", equal total" : ", per merge");
}

std::string Table(const BenchResult& result) {
  const bool judged = !result.judged.empty();
  bool distances = false;
  for (const BenchRow& row : result.rows) {
    distances = distances || (row.judged && row.judged->distance);
  }
  std::string out =
      "<table>\n<tr><th>strategy</th><th>merges</th><th>updates / merge</th><th>predicted "
      "error</th>"
      "<th>achieved error</th>";
  if (judged) absl::StrAppend(&out, "<th>Fréchet distance</th><th>precision</th><th>recall</th>");
  if (distances) absl::StrAppend(&out, "<th>from the teacher’s samples</th>");
  absl::StrAppend(&out, "<th>seconds</th><th>peak memory</th></tr>\n");
  if (result.teacher_samples && result.teacher_samples->compared) {
    absl::StrAppend(&out, "<tr><td>teacher</td><td>–</td><td>–</td><td>–</td><td>0</td>",
                    Cell(result.teacher_samples->frechet, 1),
                    Cell(result.teacher_samples->precision, 1),
                    Cell(result.teacher_samples->recall, 1), distances ? "<td>0</td>" : "",
                    "<td>–</td><td>–</td></tr>\n");
  }
  for (const BenchRow& row : result.rows) {
    if (!row.error.empty()) {
      absl::StrAppend(&out, "<tr><td>", Escape(NameOf(row)),
                      "</td><td colspan=\"10\">failed: ", Escape(row.error), "</td></tr>\n");
      continue;
    }
    absl::StrAppend(&out, "<tr><td>", Escape(NameOf(row)), "</td><td>", row.merges, "</td><td>",
                    row.iterations, "</td>", Cell(row.predicted, 0, 1),
                    Cell(row.achieved, result.trials));
    if (judged) {
      const bool compared = row.judged && row.judged->compared;
      absl::StrAppend(&out, compared ? absl::StrCat(Cell(row.judged->frechet, result.trials),
                                                    Cell(row.judged->precision, result.trials),
                                                    Cell(row.judged->recall, result.trials))
                                     : "<td>–</td><td>–</td><td>–</td>");
    }
    if (distances) {
      absl::StrAppend(&out, row.judged && row.judged->distance
                                ? Cell(*row.judged->distance, result.trials)
                                : "<td>–</td>");
    }
    absl::StrAppendFormat(
        &out, "<td>%.2f</td><td>%s</td></tr>\n", row.seconds,
        row.peak_memory_bytes > 0 ? absl::StrFormat("%.0f MB", row.peak_memory_bytes / 1e6) : "–");
  }
  absl::StrAppend(&out, "</table>\n");
  return out;
}

std::string Levels(const BenchResult& result) {
  std::string out;
  for (const BenchRow& row : result.rows) {
    if (!row.error.empty() || row.levels.empty()) continue;
    absl::StrAppend(&out, "<details><summary>", Escape(NameOf(row)),
                    "</summary><table><tr><th>jump</th><th>error against the teacher</th></tr>\n");
    for (const LevelFigure& figure : row.levels) {
      absl::StrAppendFormat(&out, "<tr><td>%d → %d</td><td>%.5g ± %.2g</td></tr>\n", figure.last,
                            figure.first - 1, figure.error, 1.96 * figure.standard_error);
    }
    absl::StrAppend(&out, "</table></details>\n");
  }
  return out.empty() ? out : absl::StrCat("<h2>Error by level</h2>\n", out);
}

}  // namespace

absl::StatusOr<std::string> BenchHtml(const BenchResult& result, const std::string& folder) {
  std::string out = absl::StrCat(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head><meta "
      "charset=\"utf-8\"/><title>Strategies compared</title><meta name=\"viewport\" "
      "content=\"width=device-width\"/><style>",
      kStyle, "</style></head><body>\n<h1>Strategies compared</h1>\n<p>", Escape(result.teacher),
      ": ", result.teacher_steps, " teacher steps (", Escape(result.schedule), ") into ",
      result.student_steps, ", start ", Escape(result.init), ", batch ", result.batch, ", ",
      result.trials, result.trials == 1 ? " trial" : " trials (± half of the 95 % interval)", ". ",
      Escape(result.training), ".</p>\n<p>Forecast: ", Escape(ForecastText(result.forecast)),
      ".</p>\n");
  for (const std::string& above : result.forecast.above) {
    absl::StrAppend(&out, "<p>The forecast was above the limit ", Escape(above), ".</p>\n");
  }
  if (!result.judged.empty()) absl::StrAppend(&out, "<p>", Escape(result.judged), ".</p>\n");
  if (result.stopped) absl::StrAppend(&out, "<p>Stopped before all strategies had run.</p>\n");
  absl::StrAppend(&out, Table(result), Levels(result));
  std::string pictures;
  if (result.teacher_samples) {
    MP_RETURN_IF_ERROR(AddPicture(folder, result.teacher_samples->grid, "teacher", &pictures));
  }
  for (const BenchRow& row : result.rows) {
    if (!row.error.empty() || !row.judged) continue;
    MP_RETURN_IF_ERROR(AddPicture(folder, row.judged->grid, NameOf(row), &pictures));
  }
  if (!pictures.empty()) {
    absl::StrAppend(&out, "<h2>Samples from the same noise</h2>\n", pictures);
  }
  absl::StrAppend(&out, "</body></html>\n");
  return out;
}

}  // namespace mergeplan
