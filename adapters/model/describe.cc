#include "adapters/model/describe.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/layers/model_folder.h"
#include "adapters/unet/unet.h"
#include "planner/base/file.h"
#include "planner/schedule/diffusers_config.h"
#include "planner/schedule/json_text.h"

namespace mergeplan::model {
namespace {

using Json = nlohmann::json;

// 1234567 -> "1,234,567".
std::string Grouped(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t k = 0; k < digits.size(); ++k) {
    if (k > 0 && (digits.size() - k) % 3 == 0) text += ',';
    text += digits[k];
  }
  return text;
}

std::string TimeName(unet::TimeEmbedding kind) {
  switch (kind) {
    case unet::TimeEmbedding::kFourier:
      return "fourier";
    case unet::TimeEmbedding::kLearned:
      return "learned";
    case unet::TimeEmbedding::kPositional:
      break;
  }
  return "positional";
}

std::string ClassName(unet::ClassEmbedding kind) {
  switch (kind) {
    case unet::ClassEmbedding::kTable:
      return "table";
    case unet::ClassEmbedding::kTimestep:
      return "timestep";
    case unet::ClassEmbedding::kIdentity:
      return "identity";
    case unet::ClassEmbedding::kNone:
      break;
  }
  return "none";
}

std::int64_t CountIn(const layers::Registry& registry, const std::string& prefix) {
  std::int64_t count = 0;
  for (const layers::Leaf& leaf : registry.leaves()) {
    if (leaf.trainable && leaf.name.rfind(prefix, 0) == 0) count += leaf.count();
  }
  return count;
}

Json Blocks(const unet::UNet2d& net) {
  Json blocks = Json::array();
  std::vector<std::int64_t> size = net.config().sample_size;
  const auto row = [&](const std::string& name, const std::string& type, std::int64_t in,
                       std::int64_t out) {
    return Json{{"name", name},
                {"type", type},
                {"in_channels", in},
                {"out_channels", out},
                {"resnets", 0},
                {"attentions", 0},
                {"heads", 0},
                {"head_width", 0},
                {"resampling", nullptr},
                {"resolution", size.empty() ? Json(nullptr) : Json(size)},
                {"parameters", CountIn(net.registry(), name + ".")}};
  };
  const std::int64_t first = net.config().block_out_channels.front();
  blocks.push_back(row("conv_in", "Conv2d", net.config().in_channels, first));
  for (const unet::BlockFacts& facts : net.Blocks()) {
    Json block = row(facts.name, facts.type, facts.in, facts.out);
    block["resnets"] = facts.resnets;
    block["attentions"] = facts.attentions;
    block["heads"] = facts.heads;
    block["head_width"] = facts.head_width;
    if (!facts.resampling.empty()) block["resampling"] = facts.resampling;
    blocks.push_back(std::move(block));
    for (std::int64_t& extent : size) {
      if (facts.resampling == "down") extent /= 2;
      if (facts.resampling == "up") extent *= 2;
    }
  }
  blocks.push_back(row("conv_out", "Conv2d", first, net.config().out_channels));
  return blocks;
}

std::string SizeText(const Json& resolution) {
  if (resolution.is_null()) return "";
  return absl::StrCat(resolution[0].get<std::int64_t>(), "x", resolution[1].get<std::int64_t>());
}

void AppendTable(const Json& blocks, std::string& text) {
  absl::StrAppendFormat(&text, "  %-14s %-24s %13s %9s %8s %15s %13s\n", "block", "type",
                        "channels", "size", "resnets", "attention", "parameters");
  for (const Json& b : blocks) {
    const std::int64_t attentions = b["attentions"].get<std::int64_t>();
    std::string size = SizeText(b["resolution"]);
    if (!b["resampling"].is_null()) size += b["resampling"] == "down" ? " /2" : " x2";
    absl::StrAppendFormat(&text, "  %-14s %-24s %13s %9s %8s %15s %13s\n",
                          b["name"].get<std::string>(), b["type"].get<std::string>(),
                          absl::StrCat(b["in_channels"].get<std::int64_t>(), " -> ",
                                       b["out_channels"].get<std::int64_t>()),
                          size, b["resnets"] == 0 ? "" : b["resnets"].dump(),
                          attentions == 0 ? ""
                                          : absl::StrCat(attentions, " (", b["heads"].dump(), " x ",
                                                         b["head_width"].dump(), ")"),
                          Grouped(b["parameters"].get<std::int64_t>()));
  }
}

void AppendComparison(const Json& compare, std::string& text) {
  const double tolerance = compare["tolerance"].get<double>();
  absl::StrAppend(&text, "compared with ", compare["file"].get<std::string>(),
                  " (largest difference over largest value)\n");
  for (const Json& d : compare["differences"]) {
    const double rounding = d["rounding"].get<double>();
    absl::StrAppendFormat(
        &text, "  %-8s %10.2e  %s%s%s\n", d["dtype"].get<std::string>(),
        d["relative"].get<double>(), d["what"].get<std::string>(),
        rounding > 0 ? absl::StrFormat(" (the reference's own float32: %.2e)", rounding) : "",
        d["within"].get<bool>() ? "" : "  <- beyond the tolerance");
  }
  absl::StrAppendFormat(&text, "  %s %g\n",
                        compare["within"].get<bool>() ? "all within" : "not within", tolerance);
}

}  // namespace

std::optional<SchedulerFacts> FindScheduler(const std::string& folder) {
  std::error_code ec;
  const std::filesystem::path real = std::filesystem::weakly_canonical(folder, ec);
  for (const std::filesystem::path& place :
       {real, real.parent_path() / "scheduler", real / "scheduler"}) {
    const std::filesystem::path file = place / "scheduler_config.json";
    if (!std::filesystem::is_regular_file(file, ec)) continue;
    SchedulerFacts facts;
    facts.file = file.string();
    const auto text = ReadFile(facts.file);
    const auto tables = text.ok() ? ReadDiffusersTables(*text, 10, facts.file, {})
                                  : absl::StatusOr<DiffusersTables>(text.status());
    if (!tables.ok()) {
      facts.fault = std::string(tables.status().message());
      return facts;
    }
    if (tables->inverted_flow) {
      facts.fault = absl::StrCat(facts.file,
                                 ": invert_sigmas is true: networks of such schedulers say x0 - "
                                 "eps, a flow with its sign turned, which is not known here; "
                                 "expected a scheduler without it");
      return facts;
    }
    const auto config = ParseJson(*text, facts.file);
    for (const char* key : {"clip_sample", "thresholding"}) {
      if (config.ok() && config->is_object() && config->contains(key) &&
          (*config)[key].is_boolean() && (*config)[key].get<bool>()) {
        facts.clips = key;
      }
    }
    facts.class_name = tables->class_name;
    facts.prediction_type = tables->prediction_type;
    facts.num_train_timesteps = tables->num_train_timesteps;
    return facts;
  }
  return std::nullopt;
}

Json DescribeUNet(const unet::UNet2d& net, const std::string& folder) {
  const unet::Config& c = net.config();
  Json model = {{"folder", folder}, {"class", "UNet2DModel"}};
  if (c.source.contains("_diffusers_version")) {
    model["diffusers_version"] = c.source["_diffusers_version"];
  }
  std::int64_t parameters = 0, buffers = 0;
  for (const layers::Leaf& leaf : net.registry().leaves()) {
    (leaf.trainable ? parameters : buffers) += leaf.count();
  }
  model["parameters"] = parameters;
  model["buffers"] = buffers;
  model["files"] = Json::array();
  std::set<std::string> dtypes;
  if (const auto files = layers::OpenWeights(folder); files.ok()) {
    for (const auto& file : *files) {
      model["files"].push_back(std::filesystem::path(file->path()).filename().string());
      for (const SafetensorsEntry& entry : file->entries()) dtypes.insert(entry.dtype);
    }
  }
  model["stored_dtypes"] = dtypes;
  model["in_channels"] = c.in_channels;
  model["out_channels"] = c.out_channels;
  model["sample_size"] = c.sample_size.empty() ? Json(nullptr) : Json(c.sample_size);
  model["size_multiple"] = c.size_multiple();
  model["time_embedding"] = {{"type", TimeName(c.time_embedding)},
                             {"inputs", c.time_inputs()},
                             {"width", c.time_embedding_dim}};
  model["class_embedding"] = {
      {"type", ClassName(c.class_embedding)},
      {"classes", c.class_embedding == unet::ClassEmbedding::kTable ? Json(c.num_class_embeds)
                                                                    : Json(nullptr)}};
  model["blocks"] = Blocks(net);
  model["scheduler"] = nullptr;
  if (const auto scheduler = FindScheduler(folder)) {
    model["scheduler"] = {{"file", scheduler->file}};
    if (!scheduler->fault.empty()) {
      model["scheduler"]["fault"] = scheduler->fault;
    } else {
      model["scheduler"]["class"] = scheduler->class_name;
      model["scheduler"]["prediction_type"] = scheduler->prediction_type;
      model["scheduler"]["num_train_timesteps"] = scheduler->num_train_timesteps;
      if (!scheduler->clips.empty()) model["scheduler"]["not_applied"] = scheduler->clips;
    }
  }
  return model;
}

Json DescribeComparison(const std::vector<Difference>& differences, const std::string& file,
                        double tolerance) {
  Json list = Json::array();
  bool within = true;
  for (const Difference& d : differences) {
    within = within && d.Within(tolerance);
    // JSON has no infinity: null.
    list.push_back({{"what", d.what},
                    {"dtype", d.dtype},
                    {"relative", d.relative},
                    {"largest", d.largest},
                    {"rounding", d.rounding},
                    {"within", d.Within(tolerance)}});
  }
  return {{"file", file}, {"tolerance", tolerance}, {"within", within}, {"differences", list}};
}

std::string Describe(const Json& model) {
  std::string text =
      absl::StrCat(model["folder"].get<std::string>(), ": ", model["class"].get<std::string>());
  if (model.contains("diffusers_version")) {
    absl::StrAppend(&text, " of diffusers ",
                    model["diffusers_version"].is_string()
                        ? model["diffusers_version"].get<std::string>()
                        : model["diffusers_version"].dump());
  }
  absl::StrAppend(&text, ", ", Grouped(model["parameters"].get<std::int64_t>()), " parameters");
  std::string dtypes;
  for (const Json& dtype : model["stored_dtypes"]) {
    absl::StrAppend(&dtypes, dtypes.empty() ? "" : ", ", dtype.get<std::string>());
  }
  absl::StrAppend(&text, " stored as ", dtypes, " in ", model["files"].size(),
                  model["files"].size() == 1 ? " file\n" : " files\n");
  absl::StrAppend(&text, "  input   ", model["in_channels"].dump(), " channels, ",
                  model["sample_size"].is_null() ? "any size" : SizeText(model["sample_size"]),
                  " (multiples of ", model["size_multiple"].dump(), ")\n  output  ",
                  model["out_channels"].dump(), " channels\n");
  const Json& time = model["time_embedding"];
  absl::StrAppend(&text, "  time    ", time["type"].get<std::string>(), ", ", time["inputs"].dump(),
                  " -> ", time["width"].dump(), "\n");
  const Json& classes = model["class_embedding"];
  absl::StrAppend(&text, "  classes ", classes["type"].get<std::string>(),
                  classes["classes"].is_null() ? "" : " of " + classes["classes"].dump(), "\n");
  const Json& scheduler = model["scheduler"];
  if (scheduler.is_null()) {
    absl::StrAppend(&text,
                    "  predicts unknown: no scheduler_config.json beside it or in ../scheduler\n");
  } else if (scheduler.contains("fault")) {
    absl::StrAppend(&text, "  predicts unknown: ", scheduler["fault"].get<std::string>(), "\n");
  } else {
    absl::StrAppend(&text, "  predicts ", scheduler["prediction_type"].get<std::string>(), " (",
                    scheduler["class"].get<std::string>(), ", ",
                    scheduler["num_train_timesteps"].dump(), " steps)\n");
    if (scheduler.contains("not_applied")) {
      absl::StrAppend(&text, "  note: ", scheduler["not_applied"].get<std::string>(),
                      " of its scheduler is not applied here, x0 estimates are not cut\n");
    }
  }
  AppendTable(model["blocks"], text);
  if (model.contains("compare")) AppendComparison(model["compare"], text);
  return text;
}

}  // namespace mergeplan::model
