#include "proto/plan/data_files.h"

#include "absl/strings/str_cat.h"

namespace troupe {

std::vector<DataFileField> TrainingFiles(const DataSpec& data) {
  std::vector<DataFileField> files;
  if (!data.tokens().empty()) {
    files.push_back({.field = "data.tokens", .path = data.tokens()});
  }
  for (int i = 0; i < data.sources_size(); ++i) {
    const DataSource& source = data.sources(i);
    files.push_back({.field = absl::StrCat("data.sources[", i, "].tokens"),
                     .path = source.tokens(),
                     .weight = source.has_weight() ? source.weight() : 1});
  }
  return files;
}

std::vector<DataFileField> DataFiles(const DataSpec& data) {
  std::vector<DataFileField> files = TrainingFiles(data);
  if (!data.validation().empty()) {
    files.push_back({.field = "data.validation", .path = data.validation()});
  }
  return files;
}

}  // namespace troupe
