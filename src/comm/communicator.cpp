#include "comm/communicator.h"

namespace zt {

CollectiveCount& CommunicationCounts::of(Purpose purpose, CollectiveKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  switch (purpose) {
    case Purpose::training: return training[index];
    case Purpose::evaluation: return evaluation[index];
    case Purpose::control: break;
  }
  return control[index];
}

}  // namespace zt
