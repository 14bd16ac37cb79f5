// What a rank is doing, for those who watch it from outside (train/trace.h): devices are told, and need not listen.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace zt {

// forward, backward: passes, of a micro-step. finish: the end of a step. compute: what a pass puts on the compute
// stream for a unit. gather, reduce: collectives of a unit's parameters and gradients. update: the optimizer on what
// this rank owns of a unit. free: a unit's gathered parameters give way.
enum class Activity : std::uint8_t { step, forward, backward, finish, compute, update, gather, reduce, free };
constexpr int activity_count = 9;

constexpr std::string_view name_of(Activity activity) {
  constexpr std::array<std::string_view, activity_count> names = {"step",   "forward", "backward", "finish", "compute",
                                                                  "update", "gather",  "reduce",   "free"};
  return names.at(static_cast<std::size_t>(activity));
}

}  // namespace zt
