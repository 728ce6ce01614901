"""Programs of TensorFlow that are told who else there is by NUM_WORKERS and TF_CONFIG alone, for tests of tasks here and in pods."""

ALL_REDUCE = """
import os, sys
import numpy as np
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()  # reads TF_CONFIG, and serves where it says
workers = int(os.environ["NUM_WORKERS"])
assert strategy.num_replicas_in_sync == workers
index = strategy.cluster_resolver.task_id
x = np.arange(8 * workers, dtype=np.float32).reshape(-1, 1) / (8 * workers)
mine = tf.constant(x[index::workers])  # the global batch is 8 times NUM_WORKERS
with strategy.scope():
    w, b = tf.Variable([[0.0]]), tf.Variable(0.0)

@tf.function
def step():
    def replica():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((mine @ w + b - (3 * mine + 1)) ** 2) / (8 * workers)
        gradients = tape.gradient(loss, [w, b])
        context = tf.distribute.get_replica_context()
        for variable, gradient in zip([w, b], context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)):
            variable.assign_sub(0.5 * gradient)
    strategy.run(replica)

for _ in range(200):
    step()
print("fitted %.3f %.3f" % (float(w.numpy()[0, 0]), float(b.numpy())), flush=True)
"""

PARAMETER_SERVER = """
import json, os, time
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
config = json.loads(os.environ["TF_CONFIG"])
kind, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(tf.train.ClusterSpec(config["cluster"]), job_name=kind, task_index=index)
if kind == "ps":
    print("serving", flush=True)
    server.join()
workers = int(os.environ["NUM_WORKERS"])
with tf.device(tf.train.replica_device_setter(cluster=config["cluster"], worker_device=f"/job:worker/task:{index}")):
    x = np.random.RandomState(index).rand(64, 1).astype(np.float32)
    w, b = tf.get_variable("w", [1, 1]), tf.get_variable("b", [1])
    steps = tf.train.get_or_create_global_step()
    loss = tf.reduce_mean((tf.matmul(x, w) + b - (3 * x + 1)) ** 2)
    train = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=steps)
assert "/job:ps" in w.device, w.device
# without the filter a session waits for every worker, also for one that is done and gone
alone = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
if index:  # a session that finds the variables not ready yet looks again after 30 s
    unready = tf.report_uninitialized_variables()
    with tf.Session(server.target, config=alone) as look:
        while look.run(unready).size:
            time.sleep(0.1)
with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, config=alone,
                                       hooks=[tf.train.StopAtStepHook(last_step=400 * workers)]) as session:
    while not session.should_stop():
        fitted = session.run([train, loss, w, b])
print("fitted %.2f %.2f" % (fitted[2][0, 0], fitted[3][0]), flush=True)
"""
