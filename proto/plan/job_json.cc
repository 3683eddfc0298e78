#include "proto/plan/job_json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace troupe {

std::string JobJson(const JobSpec& job) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  CHECK(google::protobuf::util::MessageToJsonString(job, &json, options).ok());
  return json;
}

absl::StatusOr<JobSpec> ParseJobJson(const std::string& json) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  JobSpec job;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(json, &job, options);
  if (parsed.ok()) return job;
  return absl::DataLossError(absl::StrCat(
      "the job that it keeps cannot be read: ", std::string(parsed.message())));
}

}  // namespace troupe
