#include "core/json.h"

ZT_JSON_CLASSES(, basic_json<>)
