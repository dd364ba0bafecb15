#pragma once

#include <string>

#include "adapters/encoding/encode.h"

namespace mergeplan {

struct EncodeOutput {
  bool quiet = false, json = false;
  std::string command = "encode";  // what errors begin with: another one may have asked
};

// `mergeplan encode`. 0: all samples are encoded, or this process's share; 1: failed; 2: misuse;
// 3: stopped (Ctrl-C), the same command goes on. Errors are one line on stderr. With "-" as output
// the latents go to stdout, and what is else to say to stderr.
int RunEncodeCommand(const encoding::EncodeArguments& arguments, const EncodeOutput& output);

}  // namespace mergeplan
