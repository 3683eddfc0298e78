// Any messages over gRPC, in any order: what workers say on their sessions and
// what clients ask, as the service hands them to a cluster on which a job runs.
// An input is a row of records: a kind, whose it is, two bytes of length, and
// the message as it comes over the wire.
#include <algorithm>
#include <cstdint>
#include <string>

#include "proto/scheduler.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/describe.h"
#include "scheduler/service/message_limits.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

constexpr int kRecordsMax = 64;
constexpr int kWorkers = 2;

template <typename Message, typename Use>
void Parse(const std::string& bytes, const Use& use) {
  Message message;
  if (message.ParseFromString(bytes) && CheckRequestSize(message).ok()) {
    use(message);
  }
}

void OnWorkerMessage(Harness& h, WorkerId from, const std::string& bytes) {
  WorkerMessage message;
  if (!message.ParseFromString(bytes) ||
      !CheckWorkerMessageSize(message).ok()) {
    return;
  }
  if (!message.has_register_()) return h.Send(from, message);
  h.cluster.RegisterWorker(message.register_(), h.now, h.actions)
      .status()
      .IgnoreError();
  h.Compile();
}

void OnRequest(Harness& h, int kind, const std::string& bytes) {
  const auto show = [&](Look look) { look(h.cluster); };
  switch (kind) {
    case 0:
      return Parse<SubmitJobRequest>(bytes, [&](auto& request) {
        JobSpec job = request.job();
        // What the harness has compiled has as many ranks as it says.
        const uint32_t ranks = job.parallelism().data();
        job.mutable_parallelism()->set_data(1 + ranks % (kWorkers + 1));
        h.TrySubmit(job).status().IgnoreError();
      });
    case 1:
      return Parse<CancelJobRequest>(bytes, [&](auto& request) {
        const JobId job(request.id());
        (request.checkpoint() ? h.cluster.SaveAndCancel(job, h.now, h.actions)
                              : h.cluster.Cancel(job, h.now, h.actions))
            .IgnoreError();
        h.Compile();
      });
    case 2:
      return Parse<GenerateRequest>(bytes, [&](auto& request) {
        h.cluster.Generate(request, h.now, h.actions).status().IgnoreError();
        h.Compile();
      });
    case 3:
      return Parse<CancelTextRequest>(bytes, [&](auto& request) {
        h.cluster.CancelText(request.text(), h.now, h.actions)
            .status()
            .IgnoreError();
        h.Compile();
      });
    case 4:
      return Parse<GetTimelineRequest>(bytes, [&](auto& request) {
        GetTimelineResponse response;
        TimelineOf(show, request, response).IgnoreError();
      });
    case 5:
      return Parse<WatchJobRequest>(bytes, [&](auto& request) {
        const auto job = h.cluster.FindJob(JobId(request.id()));
        if (job.ok()) {
          JobTable::NewsSince(**job, request.from_step(), request.from_event());
        }
      });
    case 6:
      return Parse<DescribeJobRequest>(bytes, [&](auto& request) {
        JobDescription description;
        DescribeJob(show, JobId(request.id()), {}, description).IgnoreError();
      });
    case 7:
      return Parse<CordonWorkerRequest>(bytes, [&](auto& request) {
        h.cluster.CordonWorker(request, h.now, h.actions)
            .status()
            .IgnoreError();
        h.Compile();
      });
    default:
      return h.Tick(absl::Milliseconds(100 * (bytes.size() + 1)));
  }
}

void LookAt(const Harness& h) {
  const auto show = [&](Look look) { look(h.cluster); };
  ListJobsResponse jobs;
  ListJobs(show, jobs);
  ListWorkersResponse workers;
  ListWorkers(show, workers);
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::Harness h;
  const std::vector<troupe::WorkerId> workers = h.JoinMany(troupe::kWorkers);
  h.Running(workers);
  constexpr size_t kHead = 4;
  for (int i = 0; i < troupe::kRecordsMax && size >= kHead; ++i) {
    const uint8_t kind = data[0];
    const uint8_t who = data[1];
    const size_t length =
        std::min<size_t>(data[2] | data[3] << 8, size - kHead);
    const std::string bytes(reinterpret_cast<const char*>(data) + kHead,
                            length);
    data += kHead + length;
    size -= kHead + length;
    if (kind % 2 == 0) {
      troupe::OnWorkerMessage(h, workers[who % workers.size()], bytes);
    } else {
      troupe::OnRequest(h, who % 9, bytes);
    }
    h.ClearActions();
  }
  troupe::LookAt(h);
  return 0;
}
