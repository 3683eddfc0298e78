#include "storage/checkpoint/adapter_files.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr uint64_t kConfigBytesMax = uint64_t{16} << 20;
constexpr char kDown[] = ".lora_A.weight";

// Keys that make an adapter more than A and B of one rank, where they are
// neither null, false, "none" nor empty.
constexpr const char* kMore[] = {"alora_invocation_tokens",
                                 "arrow_config",
                                 "kasa_config",
                                 "monteclora_config",
                                 "alpha_pattern",
                                 "bias",
                                 "layer_replication",
                                 "lora_bias",
                                 "megatron_config",
                                 "modules_to_save",
                                 "rank_pattern",
                                 "target_parameters",
                                 "trainable_token_indices",
                                 "use_bdlora",
                                 "use_dora",
                                 "use_qalora"};

// Keys beside target_modules that say which layers have an adapter.
constexpr const char* kLeavesOut[] = {"exclude_modules", "layers_pattern",
                                      "layers_to_transform"};

// Fields of one config, with errors that name file and key.
class ConfigReader {
 public:
  ConfigReader(const json& config, std::string path)
      : config_(config), path_(std::move(path)) {}

  absl::StatusOr<AdapterConfig> Read() const {
    if (TextOr("peft_type", "") != "LORA") {
      return Error("peft_type", "is not LORA, the one kind that is read");
    }
    for (const char* const key : kMore) {
      if (!Says(key)) continue;
      return Error(key, absl::StrCat("is ", FormatJson(config_[key]),
                                     ", which is not supported"));
    }
    RETURN_IF_ERROR(CheckInit());
    AdapterConfig config;
    ASSIGN_OR_RETURN(const double rank, Number("r"));
    constexpr int kRankMax = 1 << 16;
    if (rank < 1 || rank > kRankMax || rank != std::floor(rank)) {
      return Error("r", "is no whole number from 1 to 65536");
    }
    config.rank = static_cast<int>(rank);
    ASSIGN_OR_RETURN(config.alpha, Number("lora_alpha"));
    if (Says("lora_dropout")) {
      ASSIGN_OR_RETURN(config.dropout, Number("lora_dropout"));
    }
    config.rank_stabilized = Says("use_rslora");
    RETURN_IF_ERROR(ReadModules(config.modules));
    return config;
  }

 private:
  absl::Status ReadModules(std::vector<std::string>& modules) const {
    for (const char* const key : kLeavesOut) {
      if (Says(key)) return absl::OkStatus();
    }
    const auto found = config_.find("target_modules");
    if (found == config_.end() || !found->is_array()) return absl::OkStatus();
    for (const json& module : *found) {
      if (!module.is_string()) {
        return Error("target_modules", "has an entry that is no text");
      }
      modules.push_back(module.get<std::string>());
    }
    return absl::OkStatus();
  }

  // PiSSA and its kin change the weights beside the adapter as PEFT loads it.
  absl::Status CheckInit() const {
    const std::string init = TextOr("init_lora_weights", "");
    for (const char* const harmless : {"", "gaussian", "eva", "orthogonal"}) {
      if (init == harmless) return absl::OkStatus();
    }
    return Error("init_lora_weights",
                 absl::StrCat("is ", init,
                              ", which changes the model's own weights; save "
                              "it in PEFT with "
                              "path_initial_model_for_weight_conversion"));
  }

  // Whether it is there and says something.
  bool Says(const char* key) const {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) return false;
    if (found->is_boolean()) return found->get<bool>();
    if (found->is_string()) return found->get<std::string>() != "none";
    return found->is_number() || !found->empty();
  }

  absl::StatusOr<double> Number(const char* key) const {
    const auto found = config_.find(key);
    if (found == config_.end() || !found->is_number() ||
        !std::isfinite(found->get<double>())) {
      return Error(key, "is missing, or no number");
    }
    return found->get<double>();
  }

  std::string TextOr(const char* key, const char* fallback) const {
    const auto found = config_.find(key);
    if (found == config_.end() || !found->is_string()) return fallback;
    return found->get<std::string>();
  }

  absl::Status Error(const char* key, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", key, ": ", what));
  }

  const json& config_;
  const std::string path_;
};

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// The tensor in the file that the parameter is, or lies in, and its shape
// there.
struct StoredParameter {
  std::string name;
  std::vector<int64_t> shape;
  PartOfTensor part;
};

StoredParameter StoredAs(const HuggingFaceParameter& parameter) {
  StoredParameter stored = {.name = "", .shape = parameter.shape};
  if (parameter.part.has_value()) {
    stored.part = *parameter.part;
    stored.shape[0] *= parameter.part->parts;
  } else {
    stored.part = {.tensor = parameter.name, .rows = parameter.shape[0]};
  }
  stored.name = absl::StrCat(kAdapterPrefix, stored.part.tensor);
  stored.part.tensor = stored.name;
  return stored;
}

absl::Status CheckStored(const HuggingFaceWeights& weights,
                         const std::string& path,
                         const StoredParameter& wanted) {
  const SafetensorsTensor* const stored = weights.Find(wanted.name);
  if (stored == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        path, ": has no tensor ", wanted.name,
        ", which the job's modules need; are these the adapter's?"));
  }
  if (stored->shape == wanted.shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": tensor ", wanted.name, " is ", ShapeText(stored->shape),
      ", but the job makes it ", ShapeText(wanted.shape)));
}

}  // namespace

absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kAdapterConfigFile);
  ASSIGN_OR_RETURN(const std::string text,
                   ReadWholeFile(path, kConfigBytesMax));
  const absl::StatusOr<json> config = ParsePythonJsonObject(text);
  if (!config.ok()) return Annotate(config.status(), path);
  return ConfigReader(*config, path).Read();
}

absl::StatusOr<std::vector<std::string>> LayersOfAdapter(
    const std::string& directory) {
  ASSIGN_OR_RETURN(
      const HuggingFaceWeights weights,
      HuggingFaceWeights::OpenFile(directory, kAdapterWeightsFile));
  std::set<std::string> layers;
  for (const SafetensorsTensor* const tensor : weights.tensors()) {
    absl::string_view name = tensor->name;
    if (!absl::ConsumePrefix(&name, kAdapterPrefix)) continue;
    if (absl::ConsumeSuffix(&name, kDown)) layers.emplace(name);
  }
  return std::vector<std::string>(layers.begin(), layers.end());
}

absl::StatusOr<HuggingFaceWeights> OpenAdapterWeights(
    const std::string& directory,
    const std::vector<HuggingFaceParameter>& parameters) {
  ASSIGN_OR_RETURN(
      HuggingFaceWeights weights,
      HuggingFaceWeights::OpenFile(directory, kAdapterWeightsFile));
  const std::string path = absl::StrCat(directory, "/", kAdapterWeightsFile);
  std::set<std::string> known;
  for (const HuggingFaceParameter& parameter : parameters) {
    const StoredParameter wanted = StoredAs(parameter);
    RETURN_IF_ERROR(CheckStored(weights, path, wanted));
    known.insert(wanted.name);
    weights.AddPart(parameter.name, wanted.part);
    // Its type is one that is read.
    RETURN_IF_ERROR(weights.CheckShape(wanted.name, wanted.shape));
  }
  for (const SafetensorsTensor* const tensor : weights.tensors()) {
    if (known.count(tensor->name) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": tensor ", tensor->name,
                     " belongs to no layer that the job gives an adapter"));
  }
  return weights;
}

}  // namespace troupe
