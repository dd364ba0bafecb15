#include "adapters/command/program.h"
#include "planner/base/finished.h"

int main(int argc, char** argv) {
  const int code = mergeplan::RunProgram(argc, argv);
  mergeplan::TellFinished();
  return code;
}
