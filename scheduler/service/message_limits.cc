#include "scheduler/service/message_limits.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "proto/scheduler.pb.h"

namespace troupe {
namespace {

constexpr size_t kKiB = size_t{1} << 10;
constexpr size_t kMiB = size_t{1} << 20;

absl::Status Check(const google::protobuf::Message& message,
                   absl::string_view what, size_t bytes_max,
                   absl::string_view advice = "") {
  const size_t bytes = message.ByteSizeLong();
  if (bytes <= bytes_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " has ", bytes, " bytes, and at most ", bytes_max,
                   " are taken", advice));
}

size_t WorkerBytesMax(WorkerMessage::MessageCase kind) {
  switch (kind) {
    case WorkerMessage::kRegister:
    case WorkerMessage::kStoreSet:
      return 2 * kMiB;
    case WorkerMessage::kCheckpointJob:
      return 64 * kMiB;
    case WorkerMessage::kStep:
      return 16 * kMiB;
    default:
      return kMiB;
  }
}

}  // namespace

absl::Status CheckRequestSize(const google::protobuf::Message& request) {
  const google::protobuf::Descriptor* const type = request.GetDescriptor();
  size_t bytes_max = 64 * kKiB;
  if (type == SubmitJobRequest::descriptor() ||
      type == PlanJobRequest::descriptor()) {
    return Check(request, "the job", kJobBytesMax,
                 "; it says what is trained and how, and names files for all "
                 "else");
  }
  if (type == GenerateRequest::descriptor()) {
    bytes_max = 4 * kMiB;
  }
  return Check(request, type->name(), bytes_max);
}

absl::Status CheckWorkerMessageSize(const WorkerMessage& message) {
  const google::protobuf::FieldDescriptor* const kind =
      message.GetReflection()->GetOneofFieldDescriptor(
          message, WorkerMessage::descriptor()->oneof_decl(0));
  return Check(
      message,
      kind == nullptr ? "a worker's message" : kind->message_type()->name(),
      WorkerBytesMax(message.message_case()));
}

}  // namespace troupe
