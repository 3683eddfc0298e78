#include "worker/service/device_flags.h"

#include <cstdint>
#include <string>

namespace troupe {
namespace {

// A flag whose value is an amount of memory: "8GiB".
void AddBytes(CLI::App& app, const std::string& name, int64_t& bytes,
              const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&bytes, name](const std::string& text) {
           const absl::StatusOr<int64_t> parsed = ParseBytes(text);
           if (!parsed.ok()) {
             throw CLI::ValidationError(name,
                                        std::string(parsed.status().message()));
           }
           bytes = *parsed;
         },
         help)
      ->type_name("BYTES");
}

}  // namespace

void AddDeviceFlags(CLI::App& app, WorkerOptions& options) {
  app.add_option("--threads", options.threads,
                 "threads of an operation; default: one for each core");
  app.add_option("--device", options.device,
                 "cpu, or cuda:N for a GPU; default: cpu");
  app.add_flag("--cudnn,!--no-cudnn", options.cudnn,
               "on a GPU: attention by cuDNN where it is there and can, or by "
               "our own kernels alone; default: by cuDNN");
  AddBytes(app, "--device-memory", options.device_memory,
           "budget of the device tier; default: 80 % of the available RAM, or "
           "90 % of what is free on the GPU");
  AddBytes(app, "--host-memory", options.host_memory,
           "budget of the host tier; default: the rest, or half of the RAM");
  app.add_option("--nvme", options.nvme,
                 "directory of the nvme tier, on a disk; it is tried first")
      ->type_name("DIR");
  AddBytes(app, "--nvme-size", options.nvme_size,
           "budget of the nvme tier, which --nvme needs");
  app.add_option("--calibration", options.calibration_file,
                 "file that keeps this machine's rates; default: "
                 "~/.cache/troupe/calibration-THREADS.textproto, or -GPU");
}

}  // namespace troupe
