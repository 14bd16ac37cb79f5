extern "C" int zerotrain_function_of_a_library() { return 1; }
