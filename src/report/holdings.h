// Who holds what while a step goes on: the picture that a report shows of a trace, at rest and in its changes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/markup.h"
#include "report/traced_step.h"

namespace zt {

// One traced step of a run.
struct HoldingsPanel {
  std::size_t run = 0;
  std::string name{};  // "stage3 (4 ranks, stage 3, fp16)"
  TracedStep step{};
};

struct Holdings {
  std::string id{}, title{}, about{};
  std::vector<HoldingsPanel> panels{};
};

// The figure; a browser with scripts can play it and go through it step by step, others see who holds what at rest.
void write_holdings(Markup& out, const Holdings& holdings);

// The script of the figure: holdings_script.cpp. No character of it needs escaping in XML.
const char* holdings_script();

constexpr int holdings_ranks_shown = 4;
constexpr std::size_t holdings_units_shown = 16;

}  // namespace zt
