#include "clients/hugging_face/deepseek_config.h"

#include "absl/strings/str_cat.h"
#include "clients/hugging_face/experts_config.h"
#include "clients/hugging_face/rope_config.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

using nlohmann::json;

// Keys of a config, what transformers takes where they are absent, and fields.
template <class T>
struct DeepseekKey {
  const char* key;
  T value_default;
  T (ModelSpec::*get)() const;
  void (ModelSpec::*set)(T);
};
constexpr DeepseekKey<int> kDeepseekSizes[] = {
    {"kv_lora_rank", 512, &ModelSpec::kv_lora_rank,
     &ModelSpec::set_kv_lora_rank},
    {"qk_nope_head_dim", 128, &ModelSpec::qk_nope_head_dim,
     &ModelSpec::set_qk_nope_head_dim},
    {"qk_rope_head_dim", 64, &ModelSpec::qk_rope_head_dim,
     &ModelSpec::set_qk_rope_head_dim},
    {"v_head_dim", 128, &ModelSpec::v_head_dim, &ModelSpec::set_v_head_dim},
    {"num_experts_per_tok", 8, &ModelSpec::num_experts_per_tok,
     &ModelSpec::set_num_experts_per_tok},
    {"moe_intermediate_size", 2048, &ModelSpec::moe_intermediate_size,
     &ModelSpec::set_moe_intermediate_size},
    {"n_shared_experts", 1, &ModelSpec::n_shared_experts,
     &ModelSpec::set_n_shared_experts},
    {"n_group", 8, &ModelSpec::n_group, &ModelSpec::set_n_group},
    {"topk_group", 4, &ModelSpec::topk_group, &ModelSpec::set_topk_group},
    {"first_k_dense_replace", 3, &ModelSpec::first_k_dense_replace,
     &ModelSpec::set_first_k_dense_replace},
};

constexpr DeepseekKey<bool> kDeepseekFlags[] = {
    {"norm_topk_prob", true, &ModelSpec::norm_topk_prob,
     &ModelSpec::set_norm_topk_prob},
    {"rope_interleave", true, &ModelSpec::rope_interleave,
     &ModelSpec::set_rope_interleave},
    {"attention_bias", false, &ModelSpec::attention_bias,
     &ModelSpec::set_attention_bias},
};

// What the code published with the model reads, and transformers does not.
absl::Status ExpectDeepseek(const JsonFields& config) {
  RETURN_IF_ERROR(config.Expect("hidden_act", {"silu", "swish"}));
  RETURN_IF_ERROR(config.Expect("scoring_func", {"sigmoid"}));
  RETURN_IF_ERROR(config.Expect("topk_method", {"noaux_tc"}));
  ASSIGN_OR_RETURN(const int every, config.IntOr("moe_layer_freq", 1));
  if (every == 1) return absl::OkStatus();
  return config.Error("moe_layer_freq",
                      "layers without experts between others are not "
                      "supported; set it to 1");
}

}  // namespace

absl::Status ReadDeepseekV3(const JsonFields& config, ModelSpec& model) {
  constexpr int kExperts = 256;
  constexpr int kQueryRank = 1536;
  constexpr int kWidth = 18432;
  constexpr double kGateScale = 2.5;
  RETURN_IF_ERROR(ExpectDeepseek(config));
  ASSIGN_OR_RETURN(
      const int kv_heads,
      config.IntOr("num_key_value_heads", model.num_attention_heads()));
  if (kv_heads != model.num_attention_heads()) {
    return config.Error("num_key_value_heads",
                        absl::StrCat("is ", kv_heads,
                                     ", but latents are of as many heads of "
                                     "keys as of queries, ",
                                     model.num_attention_heads()));
  }
  for (const DeepseekKey<int>& size : kDeepseekSizes) {
    ASSIGN_OR_RETURN(const int value,
                     config.IntOr(size.key, size.value_default));
    (model.*size.set)(value);
  }
  for (const DeepseekKey<bool>& flag : kDeepseekFlags) {
    ASSIGN_OR_RETURN(const bool value,
                     config.BoolOr(flag.key, flag.value_default));
    (model.*flag.set)(value);
  }
  if (!config.Has("intermediate_size")) model.set_intermediate_size(kWidth);
  // Null: there are no latents of queries.
  const int rank_default = config.IsNull("q_lora_rank") ? 0 : kQueryRank;
  ASSIGN_OR_RETURN(const int rank, config.IntOr("q_lora_rank", rank_default));
  model.set_q_lora_rank(rank);
  ASSIGN_OR_RETURN(const int experts,
                   ReadExperts(config, "n_routed_experts", kExperts));
  model.set_num_experts(experts);
  ASSIGN_OR_RETURN(const double scale,
                   config.NumberOr("routed_scaling_factor", kGateScale));
  model.set_routed_scaling_factor(scale);
  ASSIGN_OR_RETURN(const double epsilon, config.NumberOr("rms_norm_eps", 1e-6));
  model.set_rms_norm_eps(epsilon);
  ASSIGN_OR_RETURN(const int modules,
                   config.IntOr("num_nextn_predict_layers", 0));
  if (modules > 0) model.set_num_nextn_predict_layers(modules);
  return ReadRope(config, RopeKeys{}, model);
}

void WriteDeepseekV3(const ModelSpec& model, json& config) {
  for (const DeepseekKey<int>& size : kDeepseekSizes) {
    config[size.key] = (model.*size.get)();
  }
  for (const DeepseekKey<bool>& flag : kDeepseekFlags) {
    config[flag.key] = (model.*flag.get)();
  }
  config["q_lora_rank"] =
      model.q_lora_rank() > 0 ? json(model.q_lora_rank()) : json();
  config.erase("num_local_experts");
  config["n_routed_experts"] = model.num_experts();
  config["routed_scaling_factor"] = model.routed_scaling_factor();
  config["num_key_value_heads"] = model.num_attention_heads();
  config["hidden_act"] = "silu";
  config["rms_norm_eps"] = model.rms_norm_eps();
  // transformers calls them so from version 5 on.
  config["num_nextn_predict_layers"] = model.num_nextn_predict_layers();
  config["num_mtp_layers"] = model.num_nextn_predict_layers();
  WriteRope(model, RopeKeys{}, config);
}

}  // namespace troupe
