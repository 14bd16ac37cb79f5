#include "comm/agree.h"

#include <algorithm>

namespace zt {

std::string first_failure(Communicator& communicator, const std::function<void()>& work) {
  std::string failure;
  try {
    work();
  } catch (const PeerFailed&) {
    throw;
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const std::vector<std::string> failures = communicator.all_gather_strings(failure);
  const auto first =
      std::find_if(failures.begin(), failures.end(), [](const std::string& text) { return !text.empty(); });
  if (first == failures.end()) return "";
  const bool only_some =
      std::any_of(failures.begin(), failures.end(), [&](const std::string& text) { return text != *first; });
  const bool not_the_first = first != failures.begin();
  const std::string who = only_some && not_the_first ? "rank " + std::to_string(first - failures.begin()) + ": " : "";
  return who + *first;
}

}  // namespace zt
