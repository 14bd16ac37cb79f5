// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): the matrices of hidden layers move along their momentum
// made orthogonal, all else as Adam moves it. One moment of a matrix is kept, two of all else.
#pragma once

#include <memory>

#include "optim/optimizer.h"

namespace zt {

// The iteration X -> a X + (b X X^T + c (X X^T)^2) X, which draws the singular values of a matrix of norm 1 towards 1:
// a quintic with a steep start, chosen by Jordan. Five rounds leave them between about 0.7 and 1.2, but for very small
// ones.
constexpr float newton_schulz_a = 3.4445F, newton_schulz_b = -4.7750F, newton_schulz_c = 2.0315F;
constexpr int newton_schulz_rounds = 5;

std::unique_ptr<Optimizer> make_muon(const OptimizerSettings& settings);

}  // namespace zt
