#pragma once

namespace mergeplan {

// From now on the first SIGINT or SIGTERM only asks to stop, the second one ends the program at
// once, as if nobody had asked. `mergeplan`, where it started this program, is told. Call it once,
// before training.
void StopOnSignals();

// Has one come?
bool StopRequested();

}  // namespace mergeplan
