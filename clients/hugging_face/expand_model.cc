#include "clients/hugging_face/expand_model.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/hugging_face/config.h"
#include "clients/hugging_face/open_model.h"
#include "google/protobuf/descriptor.h"
#include "proto/base/status.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

absl::StatusOr<ModelSpec> Read(HuggingFaceWeightsUse use,
                               const std::string& directory) {
  ASSIGN_OR_RETURN(ModelSpec model, ReadHuggingFaceConfig(directory));
  if (use == HuggingFaceWeightsUse::kUnused) return model;
  if (use == HuggingFaceWeightsUse::kIfThere) {
    ASSIGN_OR_RETURN(const bool there, HuggingFaceWeights::AreIn(directory));
    if (!there) return model;
  }
  const HuggingFaceCheck check = use == HuggingFaceWeightsUse::kTrained
                                     ? HuggingFaceCheck::kTables
                                     : HuggingFaceCheck::kHeaders;
  RETURN_IF_ERROR(OpenHuggingFaceModel(directory, check).status());
  return model;
}

}  // namespace

absl::Status ExpandHuggingFaceModel(HuggingFaceWeightsUse use,
                                    ModelSpec& model) {
  if (!model.has_hf()) return absl::OkStatus();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  model.GetReflection()->ListFields(model, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    // How routers are trained is no part of the file.
    if (field->name() == "hf" || field->name() == "experts") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("model.", field->name(),
                     ": the config.json of model.hf says it; leave it out"));
  }
  RETURN_IF_ERROR(CheckReadableHere("model.hf", model.hf()));
  absl::StatusOr<ModelSpec> read = Read(use, model.hf());
  if (!read.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.hf: ", read.status().message()));
  }
  if (model.has_experts()) *read->mutable_experts() = model.experts();
  model = *std::move(read);
  return absl::OkStatus();
}

}  // namespace troupe
