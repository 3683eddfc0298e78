#include "clients/hugging_face/adapter_files.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/plan/lora.h"

namespace troupe {
namespace {

using nlohmann::json;

// transformers_weight_conversion.py of PEFT 0.21 maps these to qwen2_moe's
// experts.
constexpr absl::string_view kRenamedByPeft[] = {"qwen3_moe", "olmoe",
                                                "deepseek_v3"};

std::string LastPart(const std::string& layer) {
  const size_t dot = layer.rfind('.');
  return dot == std::string::npos ? layer : layer.substr(dot + 1);
}

// The tensor of Hugging Face's that the parameter is, or lies in.
absl::string_view TensorName(const Parameter& parameter) {
  if (parameter.has_part_of()) return parameter.part_of().name();
  if (!parameter.each_in().empty()) return parameter.each_in();
  return parameter.name();
}

// Whether weights are kept [in, out], as in GPT-2's Conv1D.
bool IsInOut(const UnitList& units) {
  for (const UnitTable& table : units.tables) {
    for (const Op& op : table.ops()) {
      if (op.linear().adapted() && op.linear().in_out()) return true;
    }
  }
  return false;
}

// As PEFT writes numbers that are whole.
json NumberOf(double value) {
  const auto whole = static_cast<int64_t>(value);
  if (static_cast<double>(whole) == value) return whole;
  return value;
}

}  // namespace

std::vector<std::string> TargetModules(const std::vector<Unit>& units) {
  struct Layers {
    std::set<std::string> all;
    std::set<std::string> adapted;
  };
  std::map<std::string, Layers> by_last_part;
  for (const Unit& unit : units) {
    for (const Parameter& parameter : unit.parameters()) {
      absl::string_view name = TensorName(parameter);
      const bool adapted = parameter.adapter();
      if (!absl::ConsumeSuffix(&name, adapted ? kLoraDown : ".weight")) {
        continue;
      }
      const std::string layer(name);
      Layers& layers = by_last_part[LastPart(layer)];
      (adapted ? layers.adapted : layers.all).insert(layer);
    }
  }
  std::vector<std::string> modules;
  for (const auto& [last_part, layers] : by_last_part) {
    if (layers.adapted == layers.all) {
      modules.push_back(last_part);
    } else {
      modules.insert(modules.end(), layers.adapted.begin(),
                     layers.adapted.end());
    }
  }
  return modules;
}

absl::Status CheckPeftKnows(const JobSpec& job,
                            const std::vector<Unit>& units) {
  const std::string& architecture = job.model().architecture();
  if (std::count(std::begin(kRenamedByPeft), std::end(kRenamedByPeft),
                 architecture) == 0) {
    return absl::OkStatus();
  }
  std::set<std::string> of_experts;
  for (const Unit& unit : units) {
    for (const Parameter& parameter : unit.parameters()) {
      absl::string_view name = parameter.each_in();
      if (!absl::ConsumeSuffix(&name, ".weight")) continue;
      of_experts.insert(LastPart(std::string(name)));
    }
  }
  for (const std::string& module : TargetModules(units)) {
    if (of_experts.count(LastPart(module)) == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "of a ", architecture, " PEFT takes each adapter of a layer called ",
        LastPart(module), " for one of experts, but it is of ", module,
        "; export it with --merged, or train with training.lora.modules that "
        "leave such layers out"));
  }
  return absl::OkStatus();
}

bool NamesBase(const JobSpec& job) {
  // A checkpoint may have other weights than the directory.
  return job.checkpoint().resume().empty() && !job.model().hf().empty();
}

std::string FormatAdapterConfig(const JobSpec& job, const UnitList& units) {
  const LoraSpec& lora = job.training().lora();
  json config = {
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path", nullptr},
      {"inference_mode", true},
      {"r", lora.rank()},
      {"lora_alpha", NumberOf(lora.alpha())},
      {"lora_dropout", lora.dropout()},
      {"use_rslora", lora.rank_stabilized()},
      {"target_modules", TargetModules(units.units)},
      {"fan_in_fan_out", IsInOut(units)},
      {"bias", "none"},
      {"init_lora_weights", true},
      {"modules_to_save", nullptr},
      {"use_dora", false},
      {"rank_pattern", json::object()},
      {"alpha_pattern", json::object()},
  };
  if (NamesBase(job)) {
    config["base_model_name_or_path"] = job.model().hf();
  }
  return absl::StrCat(
      config.dump(2, ' ', false, json::error_handler_t::replace), "\n");
}

}  // namespace troupe
