#include "clients/hugging_face/families.h"

#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/hugging_face/deepseek_config.h"
#include "clients/hugging_face/experts_config.h"
#include "clients/hugging_face/rope_config.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr SizeKeys kGpt2Keys = {"n_layer", "n_embd", "n_head", "n_positions",
                                "n_inner"};
constexpr SizeKeys kKeys = {"num_hidden_layers", "hidden_size",
                            "num_attention_heads", "max_position_embeddings",
                            "intermediate_size"};
constexpr RopeKeys kRopeKeys = {};
constexpr RopeKeys kGptNeoxRopeKeys = {
    .theta = "rotary_emb_base", .part = "rotary_pct", .part_default = 0.25};

absl::Status ReadGpt2(const JsonFields& config, ModelSpec& model) {
  RETURN_IF_ERROR(
      config.Expect("activation_function", {"gelu_new", "gelu_pytorch_tanh"}));
  RETURN_IF_ERROR(config.ExpectBool("scale_attn_weights", true));
  RETURN_IF_ERROR(config.ExpectBool("scale_attn_by_inverse_layer_idx", false));
  RETURN_IF_ERROR(config.ExpectBool("add_cross_attention", false));
  ASSIGN_OR_RETURN(const double epsilon,
                   config.NumberOr("layer_norm_epsilon", 1e-5));
  model.set_layer_norm_epsilon(epsilon);
  return absl::OkStatus();
}

void WriteGpt2(const ModelSpec& model, json& config) {
  config["layer_norm_epsilon"] = model.layer_norm_epsilon();
  config["activation_function"] = "gelu_new";
}

// Of Llama and its relatives. `kv_heads_required`: transformers' default for
// them is a number, not that of the queries' heads.
absl::Status ReadLlamas(const JsonFields& config, bool kv_heads_required,
                        ModelSpec& model) {
  RETURN_IF_ERROR(config.Expect("hidden_act", {"silu", "swish"}));
  const std::pair<const char*, void (ModelSpec::*)(int)> sizes[] = {
      {"num_key_value_heads", &ModelSpec::set_num_key_value_heads},
      {"head_dim", &ModelSpec::set_head_dim}};
  for (const auto& [key, set] : sizes) {
    const bool required = kv_heads_required && key == sizes[0].first;
    if (!config.Has(key) && !required) continue;
    ASSIGN_OR_RETURN(const int value, config.Int(key));
    (model.*set)(value);
  }
  ASSIGN_OR_RETURN(const double epsilon, config.NumberOr("rms_norm_eps", 1e-6));
  model.set_rms_norm_eps(epsilon);
  return ReadRope(config, kRopeKeys, model);
}

void WriteLlamas(const ModelSpec& model, json& config) {
  config["hidden_act"] = "silu";
  config["rms_norm_eps"] = model.rms_norm_eps();
  config["num_key_value_heads"] = model.num_key_value_heads();
  config["head_dim"] = model.head_dim();
  WriteRope(model, kRopeKeys, config);
}

absl::Status RefuseWindow(const JsonFields& config) {
  if (!config.Has("sliding_window")) return absl::OkStatus();
  return config.Error("sliding_window",
                      "attention within a window is not supported; set it to "
                      "null to attend to all positions");
}

absl::Status ReadLlama(const JsonFields& config, ModelSpec& model) {
  RETURN_IF_ERROR(RefuseWindow(config));
  const std::pair<const char*, void (ModelSpec::*)(bool)> flags[] = {
      {"attention_bias", &ModelSpec::set_attention_bias},
      {"mlp_bias", &ModelSpec::set_mlp_bias}};
  for (const auto& [key, set] : flags) {
    ASSIGN_OR_RETURN(const bool value, config.BoolOr(key, false));
    (model.*set)(value);
  }
  return ReadLlamas(config, /*kv_heads_required=*/false, model);
}

void WriteLlama(const ModelSpec& model, json& config) {
  config["attention_bias"] = model.attention_bias();
  config["mlp_bias"] = model.mlp_bias();
  WriteLlamas(model, config);
}

absl::Status ReadMistral(const JsonFields& config, ModelSpec& model) {
  // Absent, it is transformers' default; null, there is none.
  constexpr int kWindowDefault = 4096;
  if (config.Has("sliding_window")) {
    ASSIGN_OR_RETURN(const int window, config.Int("sliding_window"));
    model.set_sliding_window(window);
  } else if (!config.IsNull("sliding_window")) {
    model.set_sliding_window(kWindowDefault);
  }
  return ReadLlamas(config, /*kv_heads_required=*/true, model);
}

void WriteMistral(const ModelSpec& model, json& config) {
  config["sliding_window"] = nullptr;
  if (model.has_sliding_window()) {
    config["sliding_window"] = model.sliding_window();
  }
  WriteLlamas(model, config);
}

// Of Qwen's layers those attend within a window that layer_types calls so;
// where it is absent, those from max_window_layers on. None does unless
// use_sliding_window is true.
absl::StatusOr<bool> HasWindows(const JsonFields& config,
                                const ModelSpec& model) {
  constexpr int kWindowDefault = 4096;
  constexpr int kFullLayersDefault = 28;
  ASSIGN_OR_RETURN(const bool used, config.BoolOr("use_sliding_window", false));
  ASSIGN_OR_RETURN(const int window,
                   config.IntOr("sliding_window", kWindowDefault));
  ASSIGN_OR_RETURN(const int full_layers,
                   config.IntOr("max_window_layers", kFullLayersDefault));
  bool windows = full_layers < model.num_hidden_layers();
  if (config.Has("layer_types")) {
    ASSIGN_OR_RETURN(const std::vector<std::string> types,
                     config.Texts("layer_types"));
    windows = false;
    for (const std::string& type : types) {
      if (type == "full_attention") continue;
      if (type != "sliding_attention") {
        return config.Error("layer_types",
                            absl::StrCat("'", type, "' is not supported"));
      }
      windows = true;
    }
  }
  return windows && used && !config.IsNull("sliding_window") &&
         window < model.max_position_embeddings();
}

absl::Status RefuseWindows(const JsonFields& config, const ModelSpec& model) {
  ASSIGN_OR_RETURN(const bool windows, HasWindows(config, model));
  if (!windows) return absl::OkStatus();
  return config.Error("use_sliding_window",
                      "attention within a window is not supported; set it to "
                      "false to attend to all positions");
}

absl::Status ReadQwen2(const JsonFields& config, ModelSpec& model) {
  RETURN_IF_ERROR(RefuseWindows(config, model));
  return ReadLlamas(config, /*kv_heads_required=*/true, model);
}

absl::Status ReadQwen3(const JsonFields& config, ModelSpec& model) {
  RETURN_IF_ERROR(config.ExpectBool("attention_bias", false));
  return ReadQwen2(config, model);
}

void WriteQwen3(const ModelSpec& model, json& config) {
  config["attention_bias"] = false;
  WriteLlamas(model, config);
}

absl::Status ReadMixtral(const JsonFields& config, ModelSpec& model) {
  RETURN_IF_ERROR(RefuseWindow(config));
  ASSIGN_OR_RETURN(const int experts, config.IntOr("num_local_experts", 8));
  ASSIGN_OR_RETURN(const int choices, config.IntOr("num_experts_per_tok", 2));
  model.set_num_experts(experts);
  model.set_num_experts_per_tok(choices);
  ASSIGN_OR_RETURN(const double jitter,
                   config.NumberOr("router_jitter_noise", 0));
  if (jitter != 0) {
    return config.Error(
        "router_jitter_noise",
        "noise before the router is not supported; set it to 0");
  }
  RETURN_IF_ERROR(ReadLlamas(config, /*kv_heads_required=*/true, model));
  // Where the file is silent transformers takes these, not the family's.
  constexpr double kEpsilon = 1e-5;
  constexpr double kTheta = 1e6;
  if (!config.Has("rms_norm_eps")) model.set_rms_norm_eps(kEpsilon);
  if (!config.Has("rope_theta") && !config.Has("rope_parameters")) {
    model.set_rope_theta(kTheta);
  }
  return absl::OkStatus();
}

void WriteMixtral(const ModelSpec& model, json& config) {
  config["num_local_experts"] = model.num_experts();
  config["num_experts_per_tok"] = model.num_experts_per_tok();
  config["sliding_window"] = nullptr;
  WriteLlamas(model, config);
}

// What transformers takes where the file is silent.
struct QwenMoeSizes {
  int experts;
  int choices;
  int intermediate;
};

absl::Status ReadQwenMoe(const JsonFields& config, const QwenMoeSizes& defaults,
                         ModelSpec& model) {
  ASSIGN_OR_RETURN(const int experts,
                   ReadExperts(config, "num_experts", defaults.experts));
  model.set_num_experts(experts);
  const std::tuple<const char*, int, void (ModelSpec::*)(int)> sizes[] = {
      {"num_experts_per_tok", defaults.choices,
       &ModelSpec::set_num_experts_per_tok},
      {"moe_intermediate_size", defaults.intermediate,
       &ModelSpec::set_moe_intermediate_size},
      {"decoder_sparse_step", 1, &ModelSpec::set_decoder_sparse_step}};
  for (const auto& [key, value_default, set] : sizes) {
    ASSIGN_OR_RETURN(const int value, config.IntOr(key, value_default));
    (model.*set)(value);
  }
  ASSIGN_OR_RETURN(const bool renormalises,
                   config.BoolOr("norm_topk_prob", false));
  model.set_norm_topk_prob(renormalises);
  if (config.Has("mlp_only_layers") && !config.IsNull("mlp_only_layers")) {
    ASSIGN_OR_RETURN(const std::vector<int> layers,
                     config.Ints("mlp_only_layers"));
    for (const int layer : layers) model.add_mlp_only_layers(layer);
  }
  RETURN_IF_ERROR(RefuseWindows(config, model));
  return ReadLlamas(config, /*kv_heads_required=*/true, model);
}

absl::Status ReadQwen3Moe(const JsonFields& config, ModelSpec& model) {
  RETURN_IF_ERROR(config.ExpectBool("attention_bias", false));
  RETURN_IF_ERROR(ReadQwenMoe(
      config, {.experts = 128, .choices = 8, .intermediate = 768}, model));
  // Here transformers has no width of its own for heads.
  if (!config.Has("head_dim") && model.num_attention_heads() > 0) {
    model.set_head_dim(model.hidden_size() / model.num_attention_heads());
  }
  return absl::OkStatus();
}

absl::Status ReadQwen2Moe(const JsonFields& config, ModelSpec& model) {
  constexpr int kShared = 5632;
  ASSIGN_OR_RETURN(const int shared,
                   config.IntOr("shared_expert_intermediate_size", kShared));
  model.set_shared_expert_intermediate_size(shared);
  RETURN_IF_ERROR(config.ExpectBool("qkv_bias", true));
  return ReadQwenMoe(
      config, {.experts = 60, .choices = 4, .intermediate = 1408}, model);
}

void WriteQwenMoe(const ModelSpec& model, json& config) {
  config["num_experts"] = model.num_experts();
  config["num_experts_per_tok"] = model.num_experts_per_tok();
  config["moe_intermediate_size"] = model.moe_intermediate_size();
  config["decoder_sparse_step"] = model.decoder_sparse_step();
  config["norm_topk_prob"] = model.norm_topk_prob();
  config["mlp_only_layers"] = json::array();
  for (const int layer : model.mlp_only_layers()) {
    config["mlp_only_layers"].push_back(layer);
  }
}

void WriteQwen2Moe(const ModelSpec& model, json& config) {
  WriteQwenMoe(model, config);
  config["shared_expert_intermediate_size"] =
      model.shared_expert_intermediate_size();
  config["qkv_bias"] = true;
  WriteLlamas(model, config);
}

void WriteQwen3Moe(const ModelSpec& model, json& config) {
  WriteQwenMoe(model, config);
  WriteQwen3(model, config);
}

absl::Status ReadOlmoe(const JsonFields& config, ModelSpec& model) {
  constexpr int kExperts = 64;
  constexpr int kChoices = 8;
  if (config.Has("clip_qkv")) {
    return config.Error("clip_qkv",
                        "queries, keys and values that are clipped are not "
                        "supported; set it to null");
  }
  ASSIGN_OR_RETURN(const int experts,
                   ReadExperts(config, "num_experts", kExperts));
  ASSIGN_OR_RETURN(const int choices,
                   config.IntOr("num_experts_per_tok", kChoices));
  ASSIGN_OR_RETURN(const bool renormalises,
                   config.BoolOr("norm_topk_prob", false));
  ASSIGN_OR_RETURN(const bool bias, config.BoolOr("attention_bias", false));
  model.set_num_experts(experts);
  model.set_num_experts_per_tok(choices);
  model.set_norm_topk_prob(renormalises);
  model.set_attention_bias(bias);
  RETURN_IF_ERROR(ReadLlamas(config, /*kv_heads_required=*/false, model));
  // Where the file is silent transformers takes these, not the family's.
  constexpr double kEpsilon = 1e-5;
  constexpr int kWidth = 2048;
  if (!config.Has("rms_norm_eps")) model.set_rms_norm_eps(kEpsilon);
  if (!config.Has("intermediate_size")) model.set_intermediate_size(kWidth);
  return absl::OkStatus();
}

void WriteOlmoe(const ModelSpec& model, json& config) {
  config["num_experts"] = model.num_experts();
  config["num_experts_per_tok"] = model.num_experts_per_tok();
  config["norm_topk_prob"] = model.norm_topk_prob();
  config["attention_bias"] = model.attention_bias();
  config["clip_qkv"] = nullptr;
  WriteLlamas(model, config);
}

absl::Status ReadGptNeox(const JsonFields& config, ModelSpec& model) {
  RETURN_IF_ERROR(config.Expect(
      "hidden_act", {"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"}));
  model.set_hidden_act("gelu");
  if (config.Has("hidden_act")) {
    ASSIGN_OR_RETURN(const std::string act, config.Text("hidden_act"));
    if (act != "gelu") model.set_hidden_act("gelu_new");  // the tanh form
  }
  const std::pair<const char*, void (ModelSpec::*)(bool)> flags[] = {
      {"use_parallel_residual", &ModelSpec::set_use_parallel_residual},
      {"attention_bias", &ModelSpec::set_attention_bias}};
  for (const auto& [key, set] : flags) {
    ASSIGN_OR_RETURN(const bool value, config.BoolOr(key, true));
    (model.*set)(value);
  }
  ASSIGN_OR_RETURN(const double epsilon,
                   config.NumberOr("layer_norm_eps", 1e-5));
  model.set_layer_norm_epsilon(epsilon);
  return ReadRope(config, kGptNeoxRopeKeys, model);
}

void WriteGptNeox(const ModelSpec& model, json& config) {
  config["hidden_act"] = model.hidden_act();
  config["use_parallel_residual"] = model.use_parallel_residual();
  config["attention_bias"] = model.attention_bias();
  config["layer_norm_eps"] = model.layer_norm_epsilon();
  WriteRope(model, kGptNeoxRopeKeys, config);
}

}  // namespace

const std::vector<HuggingFaceFamily>& HuggingFaceFamilies() {
  static const auto& families = *new std::vector<HuggingFaceFamily>{
      {"gpt2", "GPT2LMHeadModel", kGpt2Keys, true, ReadGpt2, WriteGpt2},
      {"gpt_neox", "GPTNeoXForCausalLM", kKeys, false, ReadGptNeox,
       WriteGptNeox},
      {"llama", "LlamaForCausalLM", kKeys, false, ReadLlama, WriteLlama},
      {"mistral", "MistralForCausalLM", kKeys, false, ReadMistral,
       WriteMistral},
      {"qwen2", "Qwen2ForCausalLM", kKeys, false, ReadQwen2, WriteLlamas},
      {"qwen3", "Qwen3ForCausalLM", kKeys, false, ReadQwen3, WriteQwen3},
      {"mixtral", "MixtralForCausalLM", kKeys, false, ReadMixtral,
       WriteMixtral},
      {"qwen2_moe", "Qwen2MoeForCausalLM", kKeys, false, ReadQwen2Moe,
       WriteQwen2Moe},
      {"qwen3_moe", "Qwen3MoeForCausalLM", kKeys, false, ReadQwen3Moe,
       WriteQwen3Moe},
      {"olmoe", "OlmoeForCausalLM", kKeys, false, ReadOlmoe, WriteOlmoe},
      {"deepseek_v3", "DeepseekV3ForCausalLM", kKeys, false, ReadDeepseekV3,
       WriteDeepseekV3},
  };
  return families;
}

}  // namespace troupe
