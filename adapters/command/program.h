#pragma once

namespace mergeplan {

// The program mergeplan-torch: reads the command line and runs the command. It presents itself as
// `mergeplan`, which runs it as a child process so that the planner itself needs no LibTorch.
// Returns the exit code (adapters/runtime/distill.h); a command line that makes no sense is one
// line on stderr and 2.
int RunProgram(int argc, const char* const* argv);

}  // namespace mergeplan
