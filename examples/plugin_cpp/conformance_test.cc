#include "mergeplan_conformance.h"

MERGEPLAN_PLUGIN_CONFORMANCE(BootOverVanilla, mergeplan_plugin_entry)
