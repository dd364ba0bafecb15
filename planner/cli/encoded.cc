#include "planner/cli/encoded.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/base/unnamed_file.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/cli/question.h"
#include "planner/data/spool.h"

namespace mergeplan::cli {
namespace {

std::vector<std::string> Arguments(const DataFlags& flags) {
  const EncodingFlags& encoding = flags.encoding;
  std::vector<std::string> words = {"--for", "analyze", "-o", "-", "--content", encoding.content};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.push_back(absl::StrCat(name, "=", value));
  };
  add("--vae", encoding.vae);
  add("--encoder", encoding.encoder);
  add("--size", encoding.size);
  add("--scale", flags.scale);
  add("--array", flags.array);
  add("--device", encoding.device);
  if (encoding.limit > 0) add("--limit", absl::StrCat(encoding.limit));
  if (encoding.tile > 0) add("--tile", absl::StrCat(encoding.tile));
  if (flags.threads > 0) add("--threads", absl::StrCat(flags.threads));
  if (flags.shards > 0) add("--shard", absl::StrCat(flags.shard, "/", flags.shards));
  if (flags.most_dimensions > 0) add("--most-dimensions", absl::StrCat(flags.most_dimensions));
  if (encoding.raw) words.push_back("--raw");
  words.insert(words.end(), {"--", flags.input});
  return words;
}

absl::StatusOr<std::string> Encode(const DataFlags& flags) {
  // Never closed: the descriptor is what keeps the file.
  static absl::StatusOr<UnnamedFile> file = UnnamedFile::CreateTemporary();
  if (!file.ok()) {
    return absl::Status(file.status().code(),
                        absl::StrCat(flags.input, ": its latents cannot be kept (",
                                     file.status().message(), "), expected room: set TMPDIR"));
  }
  NameSpool(file->path(), NameOfInput(flags));
  const int code =
      RunChild(*FindCompanion("encode"), Arguments(flags),
               {.called = "analyze",
                .output = file->descriptor(),
                .after_signal = "of the latents nothing is kept, run the command again"});
  if (code != 0) return Told(code);
  return file->path();
}

}  // namespace

void AddEncodingFlags(CLI::App& app, EncodingFlags& flags) {
  app.add_option("--vae", flags.vae,
                 "analyze the latents of pictures, encoded on the fly and not kept: folder of an "
                 "AutoencoderKL or AutoencoderTiny, or vae.toml (needs LibTorch)")
      ->type_name("VAE");
  app.add_option("--encoder", flags.encoder,
                 "in place of --vae: a TorchScript encoder alone, of pictures in [-1, 1] (else "
                 "--scale)")
      ->type_name("FILE");
  app.add_option("--size", flags.size, "with --vae: bring pictures to this size first")
      ->type_name("HEIGHTxWIDTH");
  AddInteger(app, "--limit", flags.limit, 1, "with --vae: pictures, from the first (default: all)")
      ->type_name("N");
  app.add_option("--content", flags.content,
                 "with --vae: mean (default) or sample, one draw of the encoder's law")
      ->type_name("WORD");
  app.add_flag("--raw", flags.raw, "with --vae: latents without the config's factor and shift");
  AddInteger(app, "--tile", flags.tile, 1,
             "with --vae: encode pictures larger than this in overlapping tiles", 65536)
      ->type_name("PIXELS");
  app.add_option("--device", flags.device, "with --vae: cpu (default), cuda or cuda:N")
      ->type_name("DEVICE");
}

absl::Status CheckEncoding(const DataFlags& flags) {
  const EncodingFlags& encoding = flags.encoding;
  if (!encoding.asked()) {
    return RefuseGiven(flags.app, {"--size", "--limit", "--content", "--raw", "--tile", "--device"},
                       "without --vae or --encoder: it says how pictures are encoded");
  }
  if (!encoding.vae.empty() && !encoding.encoder.empty()) {
    return Misuse("--vae: stands beside --encoder, expected one of the two");
  }
  if (flags.input == "-") {
    return Misuse(
        "--vae: pictures from standard input cannot be encoded, expected a file or folder");
  }
  if (encoding.content != "mean" && encoding.content != "sample") {
    return Misuse(absl::StrCat("--content: ", encoding.content, ", expected mean or sample"));
  }
  return RefuseGiven(flags.app, {"--skip-nonfinite"},
                     "beside --vae: a picture whose latent is not finite is an error");
}

absl::StatusOr<std::string> EncodedLatents(const DataFlags& flags) {
  static const absl::StatusOr<std::string> path = Encode(flags);
  return path;
}

}  // namespace mergeplan::cli
