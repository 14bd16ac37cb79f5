# The configs of configs/ train, for a few steps. Any plain text does for the GPT: LICENSE.
set(config_runs ${CMAKE_CURRENT_BINARY_DIR}/config_runs)
set(configs ${CMAKE_SOURCE_DIR}/configs)

add_test(NAME config_mlp_trains
         COMMAND zerotrain --config ${configs}/mlp.json --set training.max_steps=20 --overwrite
                 --output ${config_runs}/mlp)
add_test(NAME config_gpt_trains_on_two_ranks
         COMMAND zerotrain --ranks 2 --config ${configs}/gpt.json --set data.path=${CMAKE_SOURCE_DIR}/LICENSE
                 --set training.max_steps=3 --overwrite --output ${config_runs}/gpt)
set_tests_properties(config_mlp_trains config_gpt_trains_on_two_ranks
                     PROPERTIES PASS_REGULAR_EXPRESSION "completed:" TIMEOUT 120)
