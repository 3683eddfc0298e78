// The makers of this folder's commands; command_table.cc lists them all.
#ifndef TROUPE_CLIENTS_CLI_COMMANDS_COMMANDS_H_
#define TROUPE_CLIENTS_CLI_COMMANDS_COMMANDS_H_

#include <memory>

#include "clients/cli/command.h"

namespace troupe {

std::unique_ptr<Command> MakeCancel();
std::unique_ptr<Command> MakeClusterCertificate();
std::unique_ptr<Command> MakeCordon();
std::unique_ptr<Command> MakeDataInspect();
std::unique_ptr<Command> MakeDataPrepare();
std::unique_ptr<Command> MakeDescribe();
std::unique_ptr<Command> MakeDoctor();
std::unique_ptr<Command> MakeDown();
std::unique_ptr<Command> MakeEval();
std::unique_ptr<Command> MakeExport();
std::unique_ptr<Command> MakeGenerate();
std::unique_ptr<Command> MakeImport();
std::unique_ptr<Command> MakeJobs();
std::unique_ptr<Command> MakeLogs();
std::unique_ptr<Command> MakePlan();
std::unique_ptr<Command> MakeSubmit();
std::unique_ptr<Command> MakeTrace();
std::unique_ptr<Command> MakeUncordon();
std::unique_ptr<Command> MakeUp();
std::unique_ptr<Command> MakeVerify();
std::unique_ptr<Command> MakeWatch();
std::unique_ptr<Command> MakeWorkers();

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_COMMANDS_COMMANDS_H_
