#include "clients/hugging_face/expand_adapter.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/lora.h"
#include "storage/checkpoint/adapter_files.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

constexpr char kField[] = "training.lora.adapter";

absl::StatusOr<AdapterConfig> Read(const std::string& directory) {
  ASSIGN_OR_RETURN(AdapterConfig config, ReadAdapterConfig(directory));
  if (!config.modules.empty()) return config;
  ASSIGN_OR_RETURN(config.modules, LayersOfAdapter(directory));
  return config;
}

}  // namespace

absl::Status ExpandAdapter(TrainingSpec& training) {
  if (!training.lora().has_adapter()) return absl::OkStatus();
  LoraSpec& lora = *training.mutable_lora();
  RETURN_IF_ERROR(CheckReadableHere(kField, lora.adapter()));
  const absl::StatusOr<AdapterConfig> config = Read(lora.adapter());
  if (!config.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kField, ": ", config.status().message()));
  }
  RETURN_IF_ERROR(
      CheckSameLora(lora, {.rank = config->rank,
                           .alpha = config->alpha,
                           .rank_stabilized = config->rank_stabilized}));
  lora.set_rank(config->rank);
  lora.set_alpha(config->alpha);
  lora.set_rank_stabilized(config->rank_stabilized);
  if (!lora.has_dropout()) lora.set_dropout(config->dropout);
  if (!lora.modules().empty()) return absl::OkStatus();
  for (const std::string& module : config->modules) lora.add_modules(module);
  return absl::OkStatus();
}

}  // namespace troupe
