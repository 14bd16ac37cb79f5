// What the sections fp16, bf16, amp and torch_autocast, and the keys for formats, make of a run's precision.
#include "catch_compat.h"
#include "config_support.h"

using namespace zt;
using namespace zt::testing;

namespace {

Settings settings_with(const std::string& text, int world_size = 1) {
  return resolve_texts({tiny_gpt(), text}, {}, world_size).settings;
}
std::string preset_of(const std::string& text) { return settings_with(text).precision.preset; }
std::string refusal_with(const std::string& text) { return refusal_of({tiny_gpt(), text}); }
std::string amp(const std::string& rest) { return R"({"amp": {"enabled": true, )" + rest + "}}"; }

}  // namespace

TEST_CASE("Each preset is asked for by its keys") {
  CHECK(preset_of("{}") == "fp32");
  CHECK(preset_of(R"({"fp16": {"enabled": true}})") == "fp16");
  CHECK(preset_of(R"({"fp16": {"enabled": true, "fp16_master_weights_and_grads": true}})") == "fp16_masters");
  CHECK(preset_of(R"({"bf16": {"enabled": true}})") == "bf16");
  CHECK(preset_of(R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true}})") == "bf16_masters");
  CHECK(preset_of(R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true,
                               "bf16_optimizer_states": true}})") == "bf16_states");
  CHECK(preset_of(R"({"amp": {"enabled": true}})") == "O1");
  CHECK(preset_of(R"({"amp": {"enabled": true, "opt_level": "auto"}})") == "O1");
  CHECK(preset_of(R"({"amp": {"enabled": "auto", "opt_level": "O3"}})") == "fp32");
  CHECK(preset_of(amp(R"("opt_level": "O0")")) == "O0");
  CHECK(preset_of(amp(R"("opt_level": "O2")")) == "O2");
  CHECK(preset_of(amp(R"("opt_level": "O3")")) == "O3");
  CHECK(preset_of(R"({"torch_autocast": {"enabled": true}})") == "autocast_bf16");
  CHECK(preset_of(R"({"torch_autocast": {"enabled": true, "dtype": "float16"}})") == "autocast_fp16");
  CHECK(preset_of(R"({"torch_autocast": {"enabled": true, "dtype": "torch.float16"}})") == "autocast_fp16");
}

TEST_CASE("Overrides of apex's levels choose what the levels are made of") {
  CHECK(preset_of(amp(R"("opt_level": "O2", "keep_batchnorm_fp32": false)")) == "fp16");
  CHECK(preset_of(amp(R"("opt_level": "O2", "master_weights": false)")) == "O3_norms");
  CHECK(preset_of(amp(R"("opt_level": "O2", "master_weights": false, "keep_batchnorm_fp32": false)")) == "O3");
  CHECK(preset_of(amp(R"("opt_level": "O3", "keep_batchnorm_fp32": true)")) == "O3_norms");
  CHECK(preset_of(amp(R"("opt_level": "O3", "master_weights": true)")) == "fp16");
  CHECK(preset_of(amp(R"("opt_level": "O3", "master_weights": true, "keep_batchnorm_fp32": true)")) == "O2");
}

TEST_CASE("apex's levels scale the loss as apex does, with its overrides") {
  const LossScaleSettings o1 = settings_with(amp(R"("opt_level": "O1")")).loss_scale;
  CHECK(o1.rule == LossScaleRule::apex);
  CHECK(o1.loss_scale == 0.0);
  CHECK(o1.initial_scale_power == 16);
  CHECK(o1.loss_scale_window == 2000);
  CHECK(o1.min_loss_scale == 0.0);
  CHECK(o1.max_loss_scale == 0x1p24);
  CHECK(settings_with(amp(R"("opt_level": "O2")")).loss_scale.loss_scale == 0.0);
  CHECK(settings_with(amp(R"("opt_level": "O3")")).loss_scale.loss_scale == 1.0);
  CHECK(settings_with(amp(R"("opt_level": "O3", "loss_scale": "dynamic")")).loss_scale.loss_scale == 0.0);
  CHECK(settings_with(amp(R"("opt_level": "O2", "loss_scale": 128)")).loss_scale.loss_scale == 128.0);
  const LossScaleSettings bounds = settings_with(amp(R"("min_loss_scale": 4, "max_loss_scale": 1024)")).loss_scale;
  CHECK(bounds.min_loss_scale == 4.0);
  CHECK(bounds.max_loss_scale == 1024.0);

  const LossScaleSettings torch =
      settings_with(R"({"torch_autocast": {"enabled": true, "dtype": "float16"}})").loss_scale;
  CHECK(torch.rule == LossScaleRule::apex);
  CHECK(torch.initial_scale_power == 16);
  CHECK(torch.max_loss_scale == 0x1p126);
  CHECK(settings_with(R"({"fp16": {"enabled": true}})").loss_scale.rule == LossScaleRule::deepspeed);
}

TEST_CASE("Formats of sums and of what is sent are resolved and printed, and read back alike") {
  struct Case {
    std::string text, sum, sum_of_four, wire;
  };
  const std::vector<Case> cases = {
      {"{}", "fp32", "fp32", "fp32"},
      {R"({"bf16": {"enabled": true}})", "bf16", "fp32", "bf16"},
      {R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "bf16"}})", "bf16", "bf16", "bf16"},
      {R"({"bf16": {"enabled": true}, "communication_data_type": "fp32"})", "fp32", "fp32", "fp32"},
      {R"({"communication_data_type": "bf16"})", "fp32", "fp32", "bf16"},
      {R"({"fp16": {"enabled": true, "fp16_master_weights_and_grads": true}})", "fp16", "fp16", "fp16"},
      {amp(R"("opt_level": "O1")"), "fp32", "fp32", "fp32"},
      {amp(R"("opt_level": "O2")"), "fp16", "fp32", "fp16"},
      {amp(R"("opt_level": "O3")"), "fp16", "fp16", "fp16"},
  };
  for (const Case& which : cases) {
    INFO(which.text);
    const ResolvedConfig one = resolve_texts({tiny_gpt(), which.text});
    const ResolvedConfig four = resolve_texts({tiny_gpt(), which.text, R"({"gradient_accumulation_steps": 4})"});
    CHECK(one.json["data_types"]["grad_accum_dtype"] == which.sum);
    CHECK(four.json["data_types"]["grad_accum_dtype"] == which.sum_of_four);
    CHECK(one.json["communication_data_type"] == which.wire);
    for (const ResolvedConfig* config : {&one, &four}) {
      const ResolvedConfig again = resolve_texts({config->json.dump()});
      const std::int64_t accumulation = config->settings.batch.accumulation;
      CHECK(make_precision(again.settings.precision, accumulation) ==
            make_precision(config->settings.precision, accumulation));
      CHECK(again.json == config->json);
    }
  }
  // Norms that are fp32 stay so when the format that the preset has anyway is named.
  const Precision o2 = make_precision({"O2", "fp32", "fp16"}, 4);
  CHECK(o2.gradient == DType::f16);
  CHECK(o2.vector_gradient == DType::f32);
}

TEST_CASE("Contradictions of precision are explained") {
  const auto both = refusal_with(R"({"fp16": {"enabled": true}, "amp": {"enabled": true}})");
  CHECK_THAT(both, Catch::Contains("fp16 and amp") && Catch::Contains("set one of them to false"));
  CHECK_THAT(refusal_with(R"({"torch_autocast": {"enabled": true}, "bf16": {"enabled": true}})"),
             Catch::Contains("bf16 and torch_autocast"));
  CHECK_THAT(refusal_with(amp(R"("opt_level": "O1", "keep_batchnorm_fp32": true)")),
             Catch::Contains("amp.keep_batchnorm_fp32: found true, but opt_level O1") &&
                 Catch::Contains("use opt_level O2 or O3"));
  CHECK_THAT(refusal_with(amp(R"("opt_level": "O0", "master_weights": true)")), Catch::Contains("amp.master_weights"));
  CHECK_THAT(refusal_with(amp(R"("opt_level": "O4")")), Catch::Contains("\"O4\"") && Catch::Contains("\"O3\""));
  CHECK_THAT(refusal_with(amp(R"("opt_level": "O2", "loss_scale": "dynamc")")), Catch::Contains("\"dynamic\""));
  CHECK_THAT(refusal_with(amp(R"("opt_level": "O2", "loss_scale": true)")), Catch::Contains("found true"));
  CHECK_THAT(refusal_with(amp(R"("min_loss_scale": 64, "max_loss_scale": 32)")),
             Catch::Contains("amp.min_loss_scale") && Catch::Contains("above amp.max_loss_scale"));
  // The first scale is 2 to the 16, or the maximum if that is lower.
  CHECK_THAT(refusal_with(amp(R"("min_loss_scale": 65537)")),
             Catch::Contains("amp.min_loss_scale: found 65537") && Catch::Contains("above the first scale, 65536"));
  CHECK(refusal_with(amp(R"("min_loss_scale": 65536)")) == "accepted");
  CHECK(refusal_with(amp(R"("min_loss_scale": 32, "max_loss_scale": 32)")) == "accepted");
  CHECK_THAT(refusal_with(amp(R"("opt_level": "O3", "loss_scale": "dynamic", "min_loss_scale": 1e5)")),
             Catch::Contains("above the first scale"));
  CHECK(refusal_with(amp(R"("opt_level": "O3", "min_loss_scale": 1e5)")) == "accepted");
  CHECK_THAT(refusal_with(amp(R"("loss_scale": 64, "max_loss_scale": 32)")),
             Catch::Contains("amp.loss_scale: found 64") && Catch::Contains("above amp.max_loss_scale 32"));
  CHECK_THAT(refusal_with(amp(R"("loss_scale": 1e8)")),
             Catch::Contains("amp.max_loss_scale 16777216") && Catch::Contains("(the default)"));
  CHECK_THAT(refusal_with(amp(R"("cast_model_type": "torch.float16")")), Catch::Contains("opt_level decides it"));
  CHECK_THAT(refusal_with(R"({"bf16": {"enabled": true, "bf16_optimizer_states": true}})"),
             Catch::Contains("needs bf16.bf16_master_weights_and_grads"));
  CHECK_THAT(refusal_with(amp(R"("opt_level": "O1"}, "data_types": {"grad_accum_dtype": "fp16")")),
             Catch::Contains("gradients in fp32 (precision O1): \"fp32\""));
  CHECK_THAT(refusal_with(R"({"torch_autocast": {"enabled": true, "dtype": "float64"}})"),
             Catch::Contains("\"bfloat16\""));
  CHECK_THAT(refusal_with(R"({"model": {"freeze": "wte"}})"), Catch::Contains("model.freeze: found \"wte\""));
}

TEST_CASE("What a section without effect, a format or a level means is told once") {
  struct Row {
    std::string text, words;
    int count = 1;
  };
  const std::string unused = ".enabled is not given (false by default)";
  for (const Row& row : std::vector<Row>{
           {R"({"amp": {"opt_level": "O2", "loss_scale": 8}})", "b.json:1: amp: has no effect: amp" + unused},
           {R"({"fp16": {"loss_scale": 128, "hysteresis": 4}})", "fp16: has no effect: fp16" + unused},
           {R"({"fp16": {"on_overflow": "retry"}})", "has no effect"},
           {R"({"bf16": {"bf16_master_weights_and_grads": true}})", "has no effect"},
           {R"({"torch_autocast": {"dtype": "float16"}})", "torch_autocast: has no effect: torch_autocast" + unused},
           {R"({"fp16": {"enabled": false, "loss_scale": 128, "hysteresis": 4}})", "no effect", 0},
           {R"({"amp": {"enabled": "auto", "opt_level": "O2"}, "fp16": {}})", "no effect", 0},
           {R"({"fp16": {"enabled": true, "loss_scale": 128, "hysteresis": 4, "initial_scale_power": 16}})",
            "fp16.loss_scale: 128 is static, not 0 (dynamic): initial_scale_power, hysteresis have no effect"},
           {R"({"fp16": {"enabled": true, "loss_scale": 128, "hysteresis": 2}})", "static", 0},
           {R"({"fp16": {"enabled": true, "loss_scale": 0.5}})", "0.5 is below 1"},
           {R"({"bf16": {"enabled": true}, "communication_data_type": "fp16"})", "fp16 without loss scaling"},
           {R"({"communication_data_type": "fp16"})", "fp16 without loss scaling"},
           {R"({"amp": {"enabled": true}, "communication_data_type": "fp16"})", "fp16 without loss scaling", 0},
           {amp(R"("opt_level": "O2", "master_weights": false)"),
            "O2 without masters keeps the optimizer's averages in fp16"},
           {amp(R"("opt_level": "O2", "master_weights": false)"), "remove \"master_weights\": false, or use SGD"},
           {amp(R"("opt_level": "O3")"), "use SGD, O2, or \"master_weights\": true"},
           {amp(R"("opt_level": "O3", "master_weights": false)"), "use SGD, or O2 without"},
       }) {
    INFO(row.text);
    int count = 0;
    for (const std::string& line : resolve_texts({tiny_gpt(), row.text}).notices) {
      if (line.find(row.words) != std::string::npos) ++count;
    }
    CHECK(count == row.count);
  }
}

TEST_CASE("bf16 \"auto\" gives way to any precision that is asked for") {
  for (const char* other : {R"("fp16": {"enabled": true})", R"("amp": {"enabled": true})",
                            R"("torch_autocast": {"enabled": true, "dtype": "float16"})"}) {
    const ResolvedConfig config =
        resolve_texts({tiny_gpt(), std::string(R"({"bf16": {"enabled": "auto"}, )") + other + "}"}, {}, 1, true);
    CHECK(config.settings.precision.preset != "bf16");
  }
}
