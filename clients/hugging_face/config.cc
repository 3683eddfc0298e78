#include "clients/hugging_face/config.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/hugging_face/json_fields.h"
#include "clients/hugging_face/rope_config.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

using nlohmann::json;

// What both families have, under the names of either.
struct SizeKeys {
  const char* layers;
  const char* hidden;
  const char* heads;
  const char* positions;
  const char* intermediate;
  const char* epsilon;
};
constexpr SizeKeys kGpt2Keys = {"n_layer",     "n_embd",  "n_head",
                                "n_positions", "n_inner", "layer_norm_epsilon"};
constexpr SizeKeys kLlamaKeys = {
    "num_hidden_layers",       "hidden_size",       "num_attention_heads",
    "max_position_embeddings", "intermediate_size", "rms_norm_eps"};

absl::Status ReadSizes(const JsonFields& fields, const SizeKeys& keys,
                       ModelSpec& model) {
  ASSIGN_OR_RETURN(const int layers, fields.Int(keys.layers));
  ASSIGN_OR_RETURN(const int hidden, fields.Int(keys.hidden));
  ASSIGN_OR_RETURN(const int heads, fields.Int(keys.heads));
  ASSIGN_OR_RETURN(const int positions, fields.Int(keys.positions));
  ASSIGN_OR_RETURN(const int vocab, fields.Int("vocab_size"));
  model.set_num_hidden_layers(layers);
  model.set_hidden_size(hidden);
  model.set_num_attention_heads(heads);
  model.set_max_position_embeddings(positions);
  model.set_vocab_size(vocab);
  if (fields.Has(keys.intermediate)) {
    ASSIGN_OR_RETURN(const int intermediate, fields.Int(keys.intermediate));
    model.set_intermediate_size(intermediate);
  }
  if (fields.Has("initializer_range")) {
    ASSIGN_OR_RETURN(const double range, fields.Number("initializer_range"));
    model.set_initializer_range(range);
  }
  return absl::OkStatus();
}

absl::Status RefuseQuantised(const JsonFields& fields) {
  if (!fields.Has("quantization_config")) return absl::OkStatus();
  return fields.Error("quantization_config",
                      "quantised weights cannot be trained; use the model in "
                      "float32, bfloat16 or float16");
}

absl::StatusOr<ModelSpec> ReadGpt2(const JsonFields& fields) {
  ModelSpec model;
  model.set_architecture("gpt2");
  RETURN_IF_ERROR(ReadSizes(fields, kGpt2Keys, model));
  RETURN_IF_ERROR(
      fields.Expect("activation_function", {"gelu_new", "gelu_pytorch_tanh"}));
  RETURN_IF_ERROR(fields.ExpectBool("scale_attn_weights", true));
  RETURN_IF_ERROR(fields.ExpectBool("scale_attn_by_inverse_layer_idx", false));
  RETURN_IF_ERROR(fields.ExpectBool("add_cross_attention", false));
  ASSIGN_OR_RETURN(const double epsilon,
                   fields.NumberOr(kGpt2Keys.epsilon, 1e-5));
  model.set_layer_norm_epsilon(epsilon);
  ASSIGN_OR_RETURN(const bool tied, fields.BoolOr("tie_word_embeddings", true));
  model.set_tie_word_embeddings(tied);
  return model;
}

absl::StatusOr<ModelSpec> ReadLlama(const JsonFields& fields) {
  ModelSpec model;
  model.set_architecture("llama");
  RETURN_IF_ERROR(ReadSizes(fields, kLlamaKeys, model));
  RETURN_IF_ERROR(fields.Expect("hidden_act", {"silu", "swish"}));
  if (fields.Has("sliding_window")) {
    return fields.Error("sliding_window",
                        "attention within a window is not supported; set it "
                        "to null to attend to all positions");
  }
  const std::pair<const char*, void (ModelSpec::*)(int)> sizes[] = {
      {"num_key_value_heads", &ModelSpec::set_num_key_value_heads},
      {"head_dim", &ModelSpec::set_head_dim}};
  for (const auto& [key, set] : sizes) {
    if (!fields.Has(key)) continue;
    ASSIGN_OR_RETURN(const int value, fields.Int(key));
    (model.*set)(value);
  }
  const std::pair<const char*, void (ModelSpec::*)(bool)> flags[] = {
      {"tie_word_embeddings", &ModelSpec::set_tie_word_embeddings},
      {"attention_bias", &ModelSpec::set_attention_bias},
      {"mlp_bias", &ModelSpec::set_mlp_bias}};
  for (const auto& [key, set] : flags) {
    ASSIGN_OR_RETURN(const bool value, fields.BoolOr(key, false));
    (model.*set)(value);
  }
  ASSIGN_OR_RETURN(const double epsilon,
                   fields.NumberOr(kLlamaKeys.epsilon, 1e-6));
  model.set_rms_norm_eps(epsilon);
  RETURN_IF_ERROR(ReadRope(fields, model));
  return model;
}

}  // namespace

absl::StatusOr<ModelSpec> ParseHuggingFaceConfig(absl::string_view text,
                                                 absl::string_view where) {
  const json config = json::parse(text.begin(), text.end(), nullptr,
                                  /*allow_exceptions=*/false);
  if (!config.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": is no JSON object"));
  }
  const JsonFields fields(config, std::string(where));
  ASSIGN_OR_RETURN(const std::string type, fields.Text("model_type"));
  RETURN_IF_ERROR(RefuseQuantised(fields));
  if (type == "gpt2") return ReadGpt2(fields);
  if (type == "llama" || type == "mistral") return ReadLlama(fields);
  return fields.Error("model_type",
                      absl::StrCat("'", type,
                                   "' is not supported; there are gpt2, llama "
                                   "and mistral"));
}

absl::StatusOr<ModelSpec> ReadHuggingFaceConfig(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/config.json");
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat(
        path, ": cannot be read; give a Hugging Face model's directory"));
  }
  std::ostringstream text;
  text << file.rdbuf();
  ASSIGN_OR_RETURN(ModelSpec model, ParseHuggingFaceConfig(text.str(), path));
  model.set_hf(directory);
  return model;
}

std::string FormatHuggingFaceConfig(const HuggingFaceConfigArgs& args) {
  json config = json::parse(args.base, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) config = json::object();
  const ModelSpec& model = args.model;
  const bool gpt2 = model.architecture() == "gpt2";
  const SizeKeys& keys = gpt2 ? kGpt2Keys : kLlamaKeys;
  config["architectures"] = {gpt2 ? "GPT2LMHeadModel" : "LlamaForCausalLM"};
  config["model_type"] = gpt2 ? "gpt2" : "llama";
  config.erase("torch_dtype");  // what dtype was called
  config["dtype"] = args.dtype;
  config[keys.layers] = model.num_hidden_layers();
  config[keys.hidden] = model.hidden_size();
  config[keys.heads] = model.num_attention_heads();
  config[keys.positions] = model.max_position_embeddings();
  config[keys.intermediate] = model.intermediate_size();
  config[keys.epsilon] =
      gpt2 ? model.layer_norm_epsilon() : model.rms_norm_eps();
  config["vocab_size"] = model.vocab_size();
  config["initializer_range"] = model.initializer_range();
  config["tie_word_embeddings"] = model.tie_word_embeddings();
  // transformers' own defaults are of the pretrained models' tokenizers, and
  // may lie outside of this vocabulary.
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    if (!config.contains(key)) config[key] = nullptr;
  }
  if (gpt2) {
    config["activation_function"] = "gelu_new";
  } else {
    config["hidden_act"] = "silu";
    config["num_key_value_heads"] = model.num_key_value_heads();
    config["head_dim"] = model.head_dim();
    config["attention_bias"] = model.attention_bias();
    config["mlp_bias"] = model.mlp_bias();
    WriteRope(model, config);
  }
  return absl::StrCat(
      config.dump(2, ' ', false, json::error_handler_t::replace), "\n");
}

}  // namespace troupe
