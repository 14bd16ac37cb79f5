// A report as one HTML page that needs nothing else: no network, and no script to read its figures.
#pragma once

#include <string>

#include "report/contents.h"

namespace zt {

// `program`: "zerotrain 0.1.0 (commit ...)", for the last line. The page is well-formed XML, too.
std::string html_page(const Contents& contents, const std::string& program);

// What its figures look like: page_style.cpp.
const char* page_style();

}  // namespace zt
