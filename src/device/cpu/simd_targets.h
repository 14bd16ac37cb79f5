// Which instruction sets Highway compiles for. Every source file with vector code includes this before any header of
// Highway.
#pragma once

// The baseline, AVX2 and AVX-512 (Highway's AVX3) are enough: bits 0-7 are the successors of AVX3, which bring
// nothing that is used here, bits 11 and 12 are SSE4 and SSSE3 (Highway's detect_targets.h, numbers as some
// versions lack some names). Fewer targets keep the build short.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (0xFFLL | (1LL << 11) | (1LL << 12))
#endif
