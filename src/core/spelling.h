// "Did you mean ...?"
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace zt {

// Insertions, deletions, replacements and exchanges of neighbours that lead from one word to the other.
std::size_t edit_distance(const std::string& a, const std::string& b);
// The word of the list that `word` is most likely a misspelling of; empty: none is near.
std::string nearest_word(const std::string& word, const std::vector<std::string>& words);

}  // namespace zt
