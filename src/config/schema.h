// The table of keys as a JSON Schema (draft 2020-12), with which an editor completes and checks a config.
#pragma once

#include "config/json_reader.h"

namespace zt {

// A file may hold any part of a config, so nothing is required; rules across keys, did-you-mean and --set stay the
// program's.
Json config_schema();

}  // namespace zt
