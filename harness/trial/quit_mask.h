// Lets SIGQUIT, with which the parent ends a child that hangs, reach a worker thread: the note
// about the call that hangs is written by the thread that takes the signal.
#pragma once

#include <pthread.h>

#include <csignal>

namespace assay {

/// Blocks SIGQUIT in the calling thread for its own life. Threads started before go on taking it.
class QuitGoesToWorkers {
 public:
  QuitGoesToWorkers() {
    sigset_t quit;
    sigemptyset(&quit);
    sigaddset(&quit, SIGQUIT);
    ::pthread_sigmask(SIG_BLOCK, &quit, &before_);
  }
  ~QuitGoesToWorkers() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  QuitGoesToWorkers(const QuitGoesToWorkers&) = delete;
  QuitGoesToWorkers& operator=(const QuitGoesToWorkers&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace assay
