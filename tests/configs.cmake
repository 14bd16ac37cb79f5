# The configs of configs/ train, for a few steps. Any plain text does for the GPT: LICENSE.
set(config_runs ${CMAKE_CURRENT_BINARY_DIR}/config_runs)
set(configs ${CMAKE_SOURCE_DIR}/configs)

add_test(NAME config_mlp_trains
         COMMAND zerotrain --config ${configs}/mlp.json --set training.max_steps=20 --overwrite
                 --output ${config_runs}/mlp)
add_test(NAME config_gpt_trains_on_two_ranks
         COMMAND zerotrain --ranks 2 --config ${configs}/gpt.json --set data.path=${CMAKE_SOURCE_DIR}/LICENSE
                 --set training.max_steps=3 --overwrite --output ${config_runs}/gpt)
add_test(NAME config_regression_trains
         COMMAND zerotrain --config ${configs}/regression.json --overwrite --output ${config_runs}/regression)
add_test(NAME config_mixed_precision_trains_on_two_ranks
         COMMAND zerotrain --ranks 2 --config ${configs}/mixed_precision.json --overwrite
                 --output ${config_runs}/mixed_precision)
set(config_tests config_mlp_trains config_gpt_trains_on_two_ranks config_regression_trains
    config_mixed_precision_trains_on_two_ranks)

# 1,000 black images stand in for Fashion-MNIST.
add_test(NAME config_fashion_mnist_trains
         COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/black_images.sh ${config_runs}/images $<TARGET_FILE:zerotrain>
                 --config ${configs}/fashion-mnist.json --set training.max_steps=5 --set training.eval_steps=1 --overwrite
                 --output ${config_runs}/black_images)
list(APPEND config_tests config_fashion_mnist_trains)
set_tests_properties(${config_tests} PROPERTIES PASS_REGULAR_EXPRESSION "completed:" TIMEOUT 120)

# The real images, where scripts/prepare_data.sh has put them: 88 % of the validation images, and more.
if(EXISTS ${CMAKE_SOURCE_DIR}/data/fashion-mnist/t10k-labels-idx1-ubyte.gz)
  add_test(NAME config_fashion_mnist_learns
           COMMAND zerotrain --config ${configs}/fashion-mnist.json --overwrite --output ${config_runs}/fashion-mnist)
  set_tests_properties(config_fashion_mnist_learns PROPERTIES TIMEOUT 900 LABELS unsanitized
                       PASS_REGULAR_EXPRESSION "step 4690 [^\n]*accuracy (8[89]|9[0-9])")
endif()

# What docs/tour.md shows is what its commands print.
if(NOT ZEROTRAIN_SANITIZE)
  add_test(NAME tour_shows_what_its_commands_print COMMAND ${CMAKE_SOURCE_DIR}/scripts/tour.sh)
  set_tests_properties(tour_shows_what_its_commands_print PROPERTIES
                       ENVIRONMENT "ZEROTRAIN=$<TARGET_FILE:zerotrain>" SKIP_RETURN_CODE 77 TIMEOUT 900)
endif()

# The tables of configs/data are what the script makes.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
  add_test(NAME example_data_are_reproducible
           COMMAND sh -c "\"$1\" \"$2/scripts/make_example_data.py\" \"$3\" && diff -r \"$2/configs/data\" \"$3\"" --
                   ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/example_data)
endif()
