// A kind of model: the fields that it has and not every other, and its units as
// tensors and ops. One file each, one row in architectures.cc. llama_family.h
// has what several of them share.
#ifndef TROUPE_PROTO_PLAN_ARCHITECTURES_ARCHITECTURE_H_
#define TROUPE_PROTO_PLAN_ARCHITECTURES_ARCHITECTURE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/plan/micro_batch.h"
#include "proto/plan/unit_list.h"

namespace troupe {

struct Architecture {
  const char* name;
  // Of those that not all transformers have. Several architectures may have
  // one; a field in nobody's list is of all transformers.
  std::vector<std::string> fields;
  // The parts of ResolveModel and ModelUnits (model.h) that are its own.
  absl::Status (*resolve)(ModelSpec& model);
  absl::Status (*check)(const ModelSpec& model);
  // REQUIRES a resolved model and a shape that fits it.
  absl::StatusOr<UnitList> (*units)(const ModelSpec& model,
                                    const MicroBatchShape& shape);
  // How many there are; null: a block for each hidden layer, one before them and
  // one behind.
  absl::StatusOr<int> (*count)(const ModelSpec& model) = nullptr;
  // Has the sizes that transformers share, and needs them.
  bool transformer = true;
  // Where it is none, those of these sizes that it has.
  std::vector<std::string> shared = {};
  // Hugging Face's files may have layers behind the last one, which predict
  // further tokens.
  bool layers_behind = false;
};

// In the order in which they are listed to users.
const std::vector<Architecture>& Architectures();

Architecture DeepseekV3();
Architecture Gpt2();
Architecture GptNeox();
Architecture Graph();
Architecture Llama();
Architecture Mistral();
Architecture Mixtral();
Architecture Olmoe();
Architecture Qwen2();
Architecture Qwen2Moe();
Architecture Qwen3();
Architecture Qwen3Moe();
Architecture Synthetic();

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_ARCHITECTURES_ARCHITECTURE_H_
