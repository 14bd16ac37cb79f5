// How configs are resolved on this machine.
#pragma once

#include "config/resolve.h"

namespace zt {

// Precision follows what is fast here, and the weights that model.pretrained names say what model it is.
ResolveOptions resolve_options_here();

}  // namespace zt
