extern "C" const char* zerotrain_gpu_backend_build() {
  return "zerotrain 0.0.1, commit 0000000, interface 000000000000";
}
