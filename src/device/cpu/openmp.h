// oneDNN is built with OpenMP and asks it, in the thread that calls, how many threads to use. Tasks of the pool are
// the parallelism here, so the answer must be one. The setting belongs to the calling thread; repeating it is free.
#pragma once

#include <omp.h>

namespace zt::cpu {

inline void make_openmp_serial() {
  thread_local bool done = false;
  if (done) return;
  omp_set_num_threads(1);
  done = true;
}

}  // namespace zt::cpu
