#include "adapters/runtime/program.h"

int main(int argc, char** argv) { return mergeplan::RunProgram(argc, argv); }
