class CreateContactRequests < ActiveRecord::Migration[6.1]
  disable_ddl_transaction!

  def change
    # Makes the website and the worker wait for each other instead of failing. Rails 7.1 does that by itself.
    up_only { execute "PRAGMA journal_mode = WAL" if connection.adapter_name == "SQLite" }
    create_table :contact_requests do |table|
      table.string :name, null: false
      table.string :email, null: false
      table.text :message
      table.timestamps
    end
  end
end
