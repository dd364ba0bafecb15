#pragma once

#include "adapters/encoding/decode.h"

namespace mergeplan {

struct DecodeOutput {
  bool quiet = false, json = false;
};

// `mergeplan decode`. 0: the files are written; 1: failed; 2: misuse; 3: stopped (Ctrl-C) with
// nothing written. Errors are one line on stderr.
int RunDecodeCommand(const encoding::DecodeArguments& arguments, const DecodeOutput& output);

}  // namespace mergeplan
