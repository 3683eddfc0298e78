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
  ASSIGN_OR_RETURN(const HuggingFaceModel opened,
                   OpenHuggingFaceModel(directory, check));
  if (opened.model.num_nextn_predict_layers() == 0) {
    model.clear_num_nextn_predict_layers();
  }
  return model;
}

// Of modules that predict further tokens as many as the job says.
absl::Status ChooseModules(const ModelSpec& asked, ModelSpec& read) {
  const int there = read.num_nextn_predict_layers();
  read.clear_num_nextn_predict_layers();
  if (asked.has_mtp_coefficient()) {
    read.set_mtp_coefficient(asked.mtp_coefficient());
  }
  if (!asked.has_num_nextn_predict_layers()) return absl::OkStatus();
  read.set_num_nextn_predict_layers(asked.num_nextn_predict_layers());
  if (asked.num_nextn_predict_layers() <= there) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model.num_nextn_predict_layers: ", asked.num_nextn_predict_layers(),
      " modules are to be trained, and the files of model.hf have ", there,
      "; use ", there));
}

}  // namespace

absl::Status ExpandHuggingFaceModel(HuggingFaceWeightsUse use,
                                    ModelSpec& model) {
  if (!model.has_hf()) return absl::OkStatus();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  model.GetReflection()->ListFields(model, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    // How routers are trained is no part of the file, nor is which of its
    // modules are trained.
    if (field->name() == "hf" || field->name() == "experts" ||
        field->name() == "num_nextn_predict_layers" ||
        field->name() == "mtp_coefficient") {
      continue;
    }
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
  RETURN_IF_ERROR(ChooseModules(model, *read));
  model = *std::move(read);
  return absl::OkStatus();
}

}  // namespace troupe
