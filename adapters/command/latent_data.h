#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "adapters/judge/judge.h"
#include "adapters/parallel/communicator.h"
#include "adapters/runtime/arguments.h"

namespace mergeplan {

// A folder below $XDG_CACHE_HOME/mergeplan, or ~/.cache/mergeplan; empty where neither is known.
std::string CacheFolder(const std::string& name);

// Where the arguments say --vae or --encoder beside --data, encodes the pictures, or finds that
// they are, and puts the folder of latents in place of --data and --array. The ranks share the
// parts. Misuse for options of latents without pictures; `judged`: those of --judge are some.
// CANCELLED after Ctrl-C: the same command goes on where it was.
absl::Status EncodeData(const Communicator& ranks, bool quiet, bool judged,
                        DistillArguments* arguments);

// How a judge turns latents of the teacher into pictures, by --vae; null without.
judge::OpenDecoder DecoderOf(const DistillArguments& arguments);

}  // namespace mergeplan
