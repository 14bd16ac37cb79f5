// The text that a GPT writes at the end of its run (training.sample_prompt).
#pragma once

#include "config/settings.h"
#include "data/tokenizer.h"
#include "train/session.h"

namespace zt {

// All ranks compute it, the first prints it to stdout. Nothing where no prompt is set or the data are not text.
void print_sample(const Settings& settings, const Tokenizer* tokenizer, Session& session, bool first_rank);

}  // namespace zt
