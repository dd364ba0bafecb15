// toml++ itself: Debian's package has it as a shared library only, which a wheel cannot ask for.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
