// The names of PEFT's adapter directories (https://github.com/huggingface/peft,
// LoraConfig), and what they say of a model's adapters (proto/plan/lora.h).
#ifndef TROUPE_CLIENTS_HUGGING_FACE_ADAPTER_FILES_H_
#define TROUPE_CLIENTS_HUGGING_FACE_ADAPTER_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// LoraConfig.target_modules of units with adapters: the last part of a layer's
// name where all layers of that last part have an adapter ("q_proj"), else
// their whole names.
std::vector<std::string> TargetModules(const std::vector<Unit>& units);

// InvalidArgument where PEFT would take layers with adapters for experts: of
// models whose experts transformers 5 keeps in one tensor, it does so by the
// last part of a name.
absl::Status CheckPeftKnows(const JobSpec& job, const std::vector<Unit>& units);

// Whether the job surely began with the weights of its model.hf, so that
// adapter_config.json names it.
bool NamesBase(const JobSpec& job);

// The text of adapter_config.json. `units` are those of the job's model, with
// its adapters. REQUIRES a resolved training.lora.
std::string FormatAdapterConfig(const JobSpec& job, const UnitList& units);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_ADAPTER_FILES_H_
