// The token files that a job names.
#ifndef TROUPE_PROTO_PLAN_DATA_FILES_H_
#define TROUPE_PROTO_PLAN_DATA_FILES_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace troupe {

struct DataFileField {
  std::string field;  // "data.sources[1].tokens"
  std::string path;
  double weight = 1;
};

// Those that train: of data.tokens, or data.sources in their order; none in a
// job that reads no data.
std::vector<DataFileField> TrainingFiles(const DataSpec& data);

// These, and data.validation where it is given.
std::vector<DataFileField> DataFiles(const DataSpec& data);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_DATA_FILES_H_
