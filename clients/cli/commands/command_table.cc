#include "clients/cli/command.h"
#include "clients/cli/commands/commands.h"

namespace troupe {

std::vector<CommandRow> CommandTable() {
  return {
      {"doctor", "Say what this machine lacks, and what to do about it",
       &MakeDoctor},
      {"up", "Start a cluster on this machine", &MakeUp},
      {"down", "Stop the cluster of a folder", &MakeDown},
      {"cluster certificate", "Make a certificate for a daemon on another host",
       &MakeClusterCertificate},
      {"submit", "Queue a job; with --watch follow it to its end", &MakeSubmit},
      {"watch", "Follow a job until it ends", &MakeWatch},
      {"jobs", "List the jobs", &MakeJobs},
      {"workers", "List the workers", &MakeWorkers},
      {"workers cordon", "Take a worker out of service; what it runs goes on",
       &MakeCordon},
      {"workers uncordon", "Put a worker back into service", &MakeUncordon},
      {"describe", "Show all that is known of a job", &MakeDescribe},
      {"logs", "Show a job's events", &MakeLogs},
      {"cancel", "Stop a job, in whatever state it is, or a text", &MakeCancel},
      {"plan", "Show what a job needs and how fast it will be; runs nothing",
       &MakePlan},
      {"verify", "Run a job's plan and one rank side by side, and compare",
       &MakeVerify},
      {"trace", "Draw the timeline of a job's last traced step", &MakeTrace},
      {"data prepare", "Turn a text into a token file", &MakeDataPrepare},
      {"data inspect", "Show what a token file holds", &MakeDataInspect},
      {"import", "Make a checkpoint of a Hugging Face directory", &MakeImport},
      {"export", "Make a Hugging Face directory of a checkpoint", &MakeExport},
      {"eval", "Measure a model's loss and perplexity on a token file",
       &MakeEval},
      {"generate", "Let a trained model continue a text", &MakeGenerate},
  };
}

}  // namespace troupe
