#include "scheduler/planner/resolve_data.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"

namespace troupe {
namespace {

constexpr int kSourcesMax = 256;
constexpr int kBlocksMax = 1 << 20;
constexpr char kTokensMeaning[] = "a file made by `troupe data prepare`";

absl::Status ResolveSources(DataSpec& data) {
  if (!data.tokens().empty()) {
    return FieldError("data.tokens",
                      "is beside data.sources; put this file among those");
  }
  RETURN_IF_ERROR(CheckInteger("data.sources", data.sources_size(),
                               {.min = 1, .max = kSourcesMax}));
  for (int i = 0; i < data.sources_size(); ++i) {
    DataSource& source = *data.mutable_sources(i);
    const std::string path = absl::StrCat("data.sources[", i, "]");
    RETURN_IF_ERROR(CheckPresent({.present = !source.tokens().empty(),
                                  .path = absl::StrCat(path, ".tokens"),
                                  .meaning = kTokensMeaning}));
    if (!source.has_weight()) source.set_weight(1);
    RETURN_IF_ERROR(CheckNumber(absl::StrCat(path, ".weight"), source.weight(),
                                {.min = 0, .max = 1e9, .min_open = true}));
  }
  return absl::OkStatus();
}

absl::Status ResolveValidation(DataSpec& data) {
  if (!data.has_validation_fraction()) data.set_validation_fraction(0);
  if (!data.has_validation_blocks()) data.set_validation_blocks(1);
  RETURN_IF_ERROR(CheckNumber("data.validation_fraction",
                              data.validation_fraction(),
                              {.min = 0, .max = 1, .max_open = true}));
  RETURN_IF_ERROR(CheckInteger("data.validation_blocks",
                               data.validation_blocks(),
                               {.min = 1, .max = kBlocksMax}));
  if (data.validation_blocks() > 1 && data.validation_fraction() == 0) {
    return FieldError("data.validation_blocks",
                      absl::StrCat(data.validation_blocks(),
                                   " needs data.validation_fraction above 0; "
                                   "use 0.05, or leave this out"));
  }
  if (data.validation().empty() || data.validation_fraction() == 0) {
    return absl::OkStatus();
  }
  return FieldError("data.validation",
                    "is beside data.validation_fraction, which holds back a "
                    "part of what trains; leave one of them out");
}

}  // namespace

absl::Status ResolveNoData(DataSpec& data) {
  if (!data.tokens().empty() || data.sources_size() > 0) {
    return FieldError(data.tokens().empty() ? "data.sources" : "data.tokens",
                      "a synthetic model reads no data; leave it out");
  }
  if (data.validation_fraction() > 0 || !data.validation().empty()) {
    return FieldError(data.validation().empty() ? "data.validation_fraction"
                                                : "data.validation",
                      "a synthetic model has no data to hold back; leave it "
                      "out");
  }
  if (data.isolate_documents()) {
    return FieldError("data.isolate_documents",
                      "a synthetic model reads no documents; leave it out");
  }
  data.set_validation_fraction(0);
  return absl::OkStatus();
}

absl::Status ResolveData(bool evaluates, DataSpec& data) {
  if (data.sources_size() > 0) {
    RETURN_IF_ERROR(ResolveSources(data));
  } else if (!evaluates) {
    RETURN_IF_ERROR(CheckPresent({.present = !data.tokens().empty(),
                                  .path = "data.tokens",
                                  .meaning = kTokensMeaning}));
  }
  if (!data.has_changed()) data.set_changed(false);
  if (!data.has_isolate_documents()) data.set_isolate_documents(false);
  return ResolveValidation(data);
}

}  // namespace troupe
