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
