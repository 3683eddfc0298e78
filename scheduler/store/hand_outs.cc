#include "scheduler/store/hand_outs.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/gzip_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/build_version.h"
#include "proto/protocol_version.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/job_table.h"

namespace troupe {
namespace {

std::string Compressed(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream out(&bytes);
  google::protobuf::io::GzipOutputStream::Options options;
  options.compression_level = 1;
  google::protobuf::io::GzipOutputStream gzip(&out, options);
  CHECK(message.SerializeToZeroCopyStream(&gzip) && gzip.Close());
  return bytes;
}

bool ParseCompressed(const std::string& bytes,
                     google::protobuf::MessageLite& message) {
  google::protobuf::io::ArrayInputStream in(bytes.data(),
                                            static_cast<int>(bytes.size()));
  google::protobuf::io::GzipInputStream gzip(&in);
  return message.ParseFromZeroCopyStream(&gzip) &&
         gzip.ZlibErrorCode() == Z_STREAM_END;
}

bool NeedsNone(JobState state) {
  return state == QUEUED || Job::IsEnded(state);
}

}  // namespace

absl::Status WriteHandOuts(
    Database& database, const std::map<JobId, PersistHandOut>& hand_outs,
    const std::map<JobId, std::shared_ptr<const JobRow>>& jobs) {
  ASSIGN_OR_RETURN(
      Statement insert,
      database.Prepare("INSERT OR REPLACE INTO hand_outs VALUES (?, ?, ?, ?)"));
  for (const auto& [id, persist] : hand_outs) {
    const auto job = jobs.find(id);
    if (job != jobs.end() && NeedsNone(job->second->status.state())) continue;
    const HandOut& handed = *persist.hand_out;
    StoredHandOut rest;
    *rest.mutable_written_by() = ThisBuild();
    *rest.mutable_assignment() = handed.assignment;
    rest.mutable_loads_data()->Assign(handed.loads_data.begin(),
                                      handed.loads_data.end());
    rest.mutable_machines()->Assign(handed.machines.begin(),
                                    handed.machines.end());
    insert.Bind(1, id.value());
    insert.Bind(2, int64_t{persist.attempt});
    insert.Bind(3, Compressed(*handed.plan));
    insert.Bind(4, Compressed(rest));
    RETURN_IF_ERROR(insert.Run());
  }
  ASSIGN_OR_RETURN(Statement forget,
                   database.Prepare("DELETE FROM hand_outs WHERE job = ?"));
  for (const auto& [id, row] : jobs) {
    if (!NeedsNone(row->status.state())) continue;
    forget.Bind(1, id.value());
    RETURN_IF_ERROR(forget.Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const HandOut>> ReadHandOut(Database& database,
                                                           JobId job,
                                                           int32_t attempt) {
  ASSIGN_OR_RETURN(Statement query,
                   database.Prepare("SELECT plan, rest FROM hand_outs "
                                    "WHERE job = ? AND attempt = ?"));
  query.Bind(1, job.value());
  query.Bind(2, int64_t{attempt});
  ASSIGN_OR_RETURN(const bool there, query.Next());
  if (!there) return nullptr;
  auto plan = std::make_shared<Plan>();
  StoredHandOut rest;
  if (!ParseCompressed(query.Bytes(0), *plan) ||
      !ParseCompressed(query.Bytes(1), rest)) {
    return absl::InvalidArgumentError("what its ranks were handed is damaged");
  }
  // One without a name is of before protocol 16.
  const BuildVersion& writer = rest.written_by();
  if (writer.protocol() < kOldestProtocolVersion) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its plan was made by ",
        rest.has_written_by() ? DescribeBuild(writer) : "an older build",
        ", whose plans ", kBuildName, " does not carry on; the job goes on ",
        "from its newest checkpoint"));
  }
  auto handed = std::make_shared<HandOut>();
  handed->plan = std::move(plan);
  handed->loads_data.assign(rest.loads_data().begin(), rest.loads_data().end());
  handed->machines.assign(rest.machines().begin(), rest.machines().end());
  // What is stored is the plan as it was compiled.
  handed->moved =
      std::make_shared<const MovedPlan>(handed->plan, handed->machines);
  handed->assignment = std::move(*rest.mutable_assignment());
  return handed;
}

}  // namespace troupe
