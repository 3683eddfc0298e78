#include "worker/rank/first_adapters.h"

#include <utility>

#include "proto/base/status.h"
#include "worker/model/initialize.h"
#include "worker/rank/model_files.h"

namespace troupe {

absl::StatusOr<FirstAdapters> FirstAdapters::Open(const Plan& plan,
                                                  Device& host) {
  FirstAdapters adapters(plan, host);
  if (plan.job().training().lora().adapter().empty()) return adapters;
  ASSIGN_OR_RETURN(HuggingFaceWeights files, OpenAdapterOf(plan));
  adapters.files_.emplace(std::move(files));
  return adapters;
}

const Parameter* FirstAdapters::Find(absl::string_view name) const {
  for (const Unit& unit : plan_->units()) {
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.adapter() && parameter.name() == name) return &parameter;
    }
  }
  return nullptr;
}

absl::Status FirstAdapters::Read(const Parameter& adapter,
                                 const FlatRange& range, float* out) const {
  if (files_.has_value()) {
    return Annotate(files_->ReadF32(adapter.name(), range, out), kAdapterField);
  }
  DrawElements(*host_, adapter, plan_->job().training().seed(),
               {range.begin, range.begin + range.count}, out);
  return absl::OkStatus();
}

}  // namespace troupe
